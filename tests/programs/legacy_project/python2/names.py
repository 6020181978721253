for step in xrange(3):  # noqa: F821
    print(step)
