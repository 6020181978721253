"""Checkpoints of TF1, TF2 and Keras: what is in them, how they differ, one made of another."""
