"""Training over parameter servers: the one case in which a recorded graph runs in a Session.

Such a job is asynchronous: each worker reads and updates the variables of the servers whenever it
comes to it. TensorFlow still has the runtime that it was written for, the distributed Session. So
nothing is replayed here. The graph gets the placement that Estimator gave it, and TensorFlow's own
MonitoredSession runs it on the servers of the cluster. `Estimator.train` is the seam.

One process without servers takes the same loop if its optimizer collects gradients in queues
(`one_process.py`).
"""
