"""The version that programs see: they choose between their legacy and their TF2 code by it."""

VERSION = "1.15.5"
