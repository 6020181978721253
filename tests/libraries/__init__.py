"""Programs that train with libraries built on Estimators, and what they did on TensorFlow 2.15."""
