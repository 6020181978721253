"""SavedModels as files: read, rewritten for other readers than today's TensorFlow, written."""
