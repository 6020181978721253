"""Cases for `tf.contrib.training`."""

import json


def _attempts(tf, **calls):
    """What each call gives, or its exception, as one string each."""
    found = {}
    for name, call in calls.items():
        try:
            found[name] = repr(call())
        except Exception as error:
            found[name] = "%s: %s" % (type(error).__name__, error)  # noqa: UP031
    return {name: tf.constant(text) for name, text in found.items()}


def _hparams(tf):
    return tf.contrib.training.HParams(
        rate=0.1, units=[4, 8], name="adam", flag=True, steps=3, nothing=None, tags=("a", "b")
    )


def hparams_are_parsed(tf):
    def after(text):
        return lambda: _hparams(tf).parse(text)

    texts = [
        "rate=3",
        "rate=1e-3,steps=7",
        "units=[1, 2,3]",
        "units=[]",
        "flag=false",
        "flag=0",
        "flag=maybe",
        "name=x y",
        "tags=[c]",
        "steps=1.5",
        "steps=1,steps=2",
        "units=3",
        "none=1",
        "rate",
        "units[1]=5",
        "units[0]=[1]",
        "rate=[1.0]",
        "name=",
        "steps=",
        "units[0]=1,units=[2]",
        "units=[2],units[0]=1",
        "units[0]=1,units[0]=2",
        "nothing=3",
        "",
        "rate=.5, steps=2",
    ]
    return _attempts(tf, **{text: after(text) for text in texts})


def hparams_are_set(tf):
    def after(name, value):
        def call():
            hparams = _hparams(tf)
            hparams.set_hparam(name, value)
            return hparams

        return call

    cases = {
        "int for float": ("rate", 2),
        "float for int": ("steps", 2.0),
        "bool for int": ("steps", True),
        "int for bool": ("flag", 1),
        "text for int": ("steps", "2"),
        "int for text": ("name", 2),
        "list": ("units", [1]),
        "floats": ("units", [1.5]),
        "tuple": ("units", (1,)),
        "list for scalar": ("steps", [1]),
        "unknown": ("other", 1),
        "bytes": ("name", "x"),
        "anything for None": ("nothing", [1]),
        "or": ("nothing", "x"),
    }
    return _attempts(tf, **{name: after(*case) for name, case in cases.items()})


def hparams_as_objects(tf):
    hparams = _hparams(tf)

    def removed():
        hparams = _hparams(tf)
        hparams.del_hparam("rate")
        hparams.del_hparam("rate")
        hparams.add_hparam("rate", "now text")
        return hparams

    return _attempts(
        tf,
        json=lambda: hparams.to_json(sort_keys=True),
        indented=lambda: tf.contrib.training.HParams(a=1).to_json(indent=2, separators=(",", ":")),
        parse_json=lambda: _hparams(tf).parse_json(json.dumps({"rate": 1, "units": [3]})),
        override=lambda: _hparams(tf).override_from_dict({"steps": 9}).steps,
        values=lambda: sorted(hparams.values()),
        text=lambda: sorted(str(hparams).split(",")),
        contains=lambda: ("rate" in hparams, "other" in hparams),
        get=lambda: (hparams.get("rate"), hparams.get("other", 3), hparams.get("units", [1])),
        bad_default=lambda: hparams.get("rate", "x"),
        bad_list=lambda: hparams.get("units", 3),
        reserved=lambda: tf.contrib.training.HParams(values=1),
        again=lambda: hparams.add_hparam("rate", 1),
        empty=lambda: hparams.add_hparam("more", []),
        removed=removed,
        structure=lambda: tf.contrib.training.HParams(model_structure=3).get_model_structure(),
        parse_values=lambda: sorted(
            tf.contrib.training.parse_values("a=1,b=2,c[3]=x", {"a": int, "c": str}, True).items()
        ),
    )


def gradients(tf):
    weights = tf.get_variable("weights", [3])
    loss = tf.reduce_sum(tf.square(weights))
    training = tf.contrib.training
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    step = tf.train.get_or_create_global_step()
    train = training.create_train_op(
        loss, optimizer, transform_grads_fn=training.clip_gradient_norms_fn(0.5)
    )
    doubled = training.multiply_gradients([(tf.constant([1.0]), weights)], {weights: 2.0})
    return [{"loss": train}, {"weights": weights, "step": step}, {"doubled": doubled[0][0]}]


def servers_of_variables(tf):
    training = tf.contrib.training
    found = {}
    strategies = {
        "greedy": training.GreedyLoadBalancingStrategy(3, training.byte_size_load_fn),
        "random": training.RandomStrategy(3, seed=2),
        "random_0": training.RandomStrategy(3),
    }
    sizes = [[], [9], [2, 5], [30], [4], [3, 3], [1], [40]]
    for name, strategy in strategies.items():
        setter = tf.train.replica_device_setter(ps_tasks=3, ps_strategy=strategy)
        with tf.Graph().as_default(), tf.device(setter):
            made = [
                tf.get_variable("v_%d" % i, sizes[i], use_resource=False)  # noqa: UP031
                for i in range(len(sizes))
            ]
            made.append(tf.get_variable("wide", [7], tf.float64, use_resource=False))
            found.update({name + "_" + v.op.name: v.device for v in made})
    return {name: tf.constant(device) for name, device in sorted(found.items())}


def resampled(tf):
    training = tf.contrib.training
    x = tf.constant([[1, 2], [3, 4], [5, 6], [7, 8]])
    rates = tf.constant([0.0, 1.0, 2.5, 8.0])
    found = training.resample_at_rate([x, x[:, 0]], rates, seed=3)
    return {"found": found, "none": training.resample_at_rate([x], tf.zeros([4]))}


def resampled_by_weight(tf):
    x = tf.constant([10, 20, 30])
    weights = tf.constant([1.0, 0.0, 3.0])
    found = tf.contrib.training.weighted_resample([x], weights, 2.0, mean_decay=0.9, seed=5)
    named = tf.contrib.training.weighted_resample([x], weights, 0.5, scope="mine", seed=5)
    return [{"found": found}, {"found": found}, {"named": named}]
