"""The version that programs see: they choose between their legacy and their TF2 code by it."""

VERSION = "1.15.5"
KERAS_VERSION = "2.2.4-tf"
