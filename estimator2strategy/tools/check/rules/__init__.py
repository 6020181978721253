"""One rule per file.

E2S0: files; E2S1: names of TensorFlow; E2S2: Estimator; E2S3: input; E2S4: TPU code; E2S5: TF2.
"""
