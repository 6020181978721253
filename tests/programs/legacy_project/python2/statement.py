# fmt: off
import tensorflow as tf

print "training"
