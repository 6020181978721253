"""TensorFlow 1's optimizers as Keras 3 optimizers: the same numbers, also for looked-up rows.

    model.compile(optimizer=Momentum(0.1, 0.9), loss="mse")

Keras 3 has classes of most of these names, which compute something else where an id is twice in a
batch, for rows that a batch does not look up, or after the learning rate has changed. Copy those
that you need. They need TensorFlow as Keras's backend.
"""

import keras
import tensorflow as tf


class Optimizer(keras.optimizers.Optimizer):
    """Applies `rule` to a variable, or to those of its rows that the batch has looked up.

    A subclass defines `slots`, and `rule(gradient, rate, variable, *slots)`, which returns the new
    variable and slots.
    """

    def slots(self):
        """The first value of each slot, by its name."""
        return {}

    def shrinks(self):
        """The factors of slots that shrink in the rows that the batch has not looked up."""
        return {}

    def __init__(self, learning_rate, name=None, **numbers):
        super().__init__(learning_rate=learning_rate, name=name)
        self.numbers = numbers
        self.__dict__.update(numbers)

    def get_config(self):
        # Of Keras's own arguments only the two that TensorFlow 1 has.
        config = super().get_config()
        return {**{key: config[key] for key in ("learning_rate", "name")}, **self.numbers}

    def build(self, variables):
        if not self.built:
            super().build(variables)
            self.all_slots = [
                self.add_optimizer_variables(variables, slot, keras.initializers.Constant(first))
                for slot, first in self.slots().items()
            ]

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        rate = tf.cast(learning_rate, variable.dtype)
        state = [of_tensorflow(variable), *(of_tensorflow(s[index]) for s in self.all_slots)]
        if isinstance(gradient, tf.IndexedSlices):
            self.update_rows(gradient, rate, state)
            return
        for target, value in zip(state, self.rule(gradient, rate, *map(tf.identity, state))):
            self.assign(target, value)

    def update_rows(self, gradient, rate, state):
        ids, places = tf.unique(gradient.indices)
        summed = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(ids))
        rows = [tf.gather(target, ids) for target in state]
        factors = [None, *(self.shrinks().get(slot) for slot in self.slots())]
        for target, factor, value in zip(state, factors, self.rule(summed, rate, *rows)):
            if factor:
                self.assign(target, target * factor)
            target.scatter_update(tf.IndexedSlices(value, ids))

    def power(self, beta):
        """beta ** step, of the step that is applied."""
        return tf.pow(beta, tf.cast(self.iterations + 1, tf.float32))


def of_tensorflow(variable):
    """The tf.Variable of a variable of Keras."""
    return variable if isinstance(variable, tf.Variable) else variable.value


class Momentum(Optimizer):
    """tf.train.MomentumOptimizer: the learning rate is not part of what accumulates."""

    def slots(self):
        return {"momentum": 0.0}

    def __init__(self, learning_rate, momentum, nesterov=False, name=None):
        super().__init__(learning_rate, name, momentum=momentum, nesterov=nesterov)

    def rule(self, gradient, rate, variable, accumulated):
        accumulated = self.momentum * accumulated + gradient
        step = gradient + self.momentum * accumulated if self.nesterov else accumulated
        return variable - rate * step, accumulated


class Adam(Optimizer):
    """tf.train.AdamOptimizer: all rows move, also those that nobody looked up."""

    def slots(self):
        return {"m": 0.0, "v": 0.0}

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-8, name=None):
        super().__init__(learning_rate, name, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon)

    def rate_now(self, rate):
        return rate * tf.sqrt(1 - self.power(self.beta_2)) / (1 - self.power(self.beta_1))

    def rule(self, gradient, rate, variable, m, v):
        m = self.beta_1 * m + (1 - self.beta_1) * gradient
        v = self.beta_2 * v + (1 - self.beta_2) * tf.square(gradient)
        return variable - self.rate_now(rate) * m / (tf.sqrt(v) + self.epsilon), m, v

    def update_step(self, gradient, variable, learning_rate):
        # This adds up the gradients of an id, and moves the other rows too.
        super().update_step(tf.convert_to_tensor(gradient), variable, learning_rate)


class LazyAdam(Adam):
    """tf.contrib.opt.LazyAdamOptimizer: only looked-up rows move."""

    update_step = Optimizer.update_step


class Nadam(LazyAdam):
    """tf.contrib.opt.NadamOptimizer: beta_1 alone weighs the step ahead."""

    def shrinks(self):
        return {"m": self.beta_1, "v": self.beta_2}

    def rule(self, gradient, rate, variable, m, v):
        m = self.beta_1 * m + (1 - self.beta_1) * gradient
        v = self.beta_2 * v + (1 - self.beta_2) * tf.square(gradient)
        ahead = self.beta_1 * m + (1 - self.beta_1) * gradient
        return variable - self.rate_now(rate) * ahead / (tf.sqrt(v) + self.epsilon), m, v


class AdaMax(LazyAdam):
    """tf.contrib.opt.AdaMaxOptimizer."""

    def rule(self, gradient, rate, variable, m, v):
        m = self.beta_1 * m + (1 - self.beta_1) * gradient
        v = tf.maximum(self.beta_2 * v, tf.abs(gradient))
        rate = rate / (1 - self.power(self.beta_1))
        return variable - rate * m / (v + self.epsilon), m, v


class AdamW(Adam):
    """tf.contrib.opt.AdamWOptimizer: the decay is not multiplied by the learning rate."""

    def __init__(self, weight_decay, learning_rate=0.001, **numbers):
        super().__init__(learning_rate, **numbers)
        self.decay = self.numbers["weight_decay"] = weight_decay

    def update_step(self, gradient, variable, learning_rate):
        decay(variable, gradient, self.decay)
        super().update_step(gradient, variable, learning_rate)


class MomentumW(Momentum):
    """tf.contrib.opt.MomentumWOptimizer."""

    def __init__(self, weight_decay, learning_rate, momentum, nesterov=False, name=None):
        super().__init__(learning_rate, momentum, nesterov, name)
        self.decay = self.numbers["weight_decay"] = weight_decay

    def update_step(self, gradient, variable, learning_rate):
        decay(variable, gradient, self.decay)
        super().update_step(gradient, variable, learning_rate)


def decay(variable, gradient, part):
    """Takes a part off a variable, or off its looked-up rows, as tf.contrib.opt's decay does."""
    if isinstance(gradient, tf.IndexedSlices):
        ids, _ = tf.unique(gradient.indices)
        rows = part * tf.gather(of_tensorflow(variable), ids)
        of_tensorflow(variable).scatter_sub(tf.IndexedSlices(rows, ids))
    else:
        variable.assign_sub(part * variable)


class Adagrad(Optimizer):
    """tf.train.AdagradOptimizer."""

    def __init__(self, learning_rate, initial_accumulator_value=0.1, name=None):
        super().__init__(learning_rate, name, initial_accumulator_value=initial_accumulator_value)

    def slots(self):
        return {"accumulator": self.initial_accumulator_value}

    def rule(self, gradient, rate, variable, squares):
        squares = squares + tf.square(gradient)
        return variable - rate * gradient * tf.math.rsqrt(squares), squares


class Adadelta(Optimizer):
    """tf.train.AdadeltaOptimizer."""

    def slots(self):
        return {"accum": 0.0, "accum_update": 0.0}

    def __init__(self, learning_rate=0.001, rho=0.95, epsilon=1e-8, name=None):
        super().__init__(learning_rate, name, rho=rho, epsilon=epsilon)

    def rule(self, gradient, rate, variable, squares, updates):
        squares = self.rho * squares + (1 - self.rho) * tf.square(gradient)
        update = tf.sqrt(updates + self.epsilon) * tf.math.rsqrt(squares + self.epsilon) * gradient
        updates = self.rho * updates + (1 - self.rho) * tf.square(update)
        return variable - rate * update, squares, updates


class RMSProp(Optimizer):
    """tf.train.RMSPropOptimizer: the mean square starts from ones."""

    def slots(self):
        return {"rms": 1.0, "mean": 0.0, "momentum": 0.0}

    def __init__(
        self, learning_rate, decay=0.9, momentum=0.0, epsilon=1e-10, centered=False, name=None
    ):
        super().__init__(
            learning_rate, name, decay=decay, momentum=momentum, epsilon=epsilon, centered=centered
        )

    def rule(self, gradient, rate, variable, squares, mean, moving):
        squares = self.decay * squares + (1 - self.decay) * tf.square(gradient)
        if self.centered:
            mean = self.decay * mean + (1 - self.decay) * gradient
        root = tf.math.rsqrt(squares - tf.square(mean) + self.epsilon)
        moving = self.momentum * moving + rate * gradient * root
        return variable - moving, squares, mean, moving


class Ftrl(Optimizer):
    """tf.train.FtrlOptimizer, with learning_rate_power=-0.5."""

    def __init__(
        self, learning_rate, initial_accumulator_value=0.1, l1=0.0, l2=0.0, l2_shrinkage=0.0,
        name=None,
    ):  # fmt: skip
        super().__init__(
            learning_rate, name, initial_accumulator_value=initial_accumulator_value, l1=l1, l2=l2,
            l2_shrinkage=l2_shrinkage,
        )  # fmt: skip

    def slots(self):
        return {"accumulator": self.initial_accumulator_value, "linear": 0.0}

    def rule(self, gradient, rate, variable, squares, linear):
        shrunk = gradient + 2 * self.l2_shrinkage * variable
        new_squares = squares + tf.square(gradient)
        grown = (tf.sqrt(new_squares) - tf.sqrt(squares)) / rate
        linear = linear + shrunk - grown * variable
        divisor = tf.sqrt(new_squares) / rate + 2 * self.l2
        return (tf.clip_by_value(linear, -self.l1, self.l1) - linear) / divisor, new_squares, linear


def proximal(variable, rate, l1, l2):
    """The variable after a step of the regularizers."""
    near = tf.sign(variable) * tf.nn.relu(tf.abs(variable) - rate * l1)
    return near / (1 + rate * l2)


class ProximalGradientDescent(Optimizer):
    """tf.train.ProximalGradientDescentOptimizer."""

    def __init__(self, learning_rate, l1=0.0, l2=0.0, name=None):
        super().__init__(learning_rate, name, l1=l1, l2=l2)

    def rule(self, gradient, rate, variable):
        return (proximal(variable - rate * gradient, rate, self.l1, self.l2),)


class ProximalAdagrad(Adagrad):
    """tf.train.ProximalAdagradOptimizer."""

    def __init__(self, learning_rate, initial_accumulator_value=0.1, l1=0.0, l2=0.0, name=None):
        super().__init__(learning_rate, initial_accumulator_value, name)
        self.numbers.update({"l1": l1, "l2": l2})
        self.l1, self.l2 = l1, l2

    def rule(self, gradient, rate, variable, squares):
        squares = squares + tf.square(gradient)
        rate = rate * tf.math.rsqrt(squares)
        return proximal(variable - rate * gradient, rate, self.l1, self.l2), squares


class AdagradDA(Optimizer):
    """tf.train.AdagradDAOptimizer, without regularization; it counts its own steps."""

    def __init__(self, learning_rate, initial_accumulator_value=0.1, name=None):
        super().__init__(learning_rate, name, initial_accumulator_value=initial_accumulator_value)

    def slots(self):
        return {"sum": 0.0, "squares": self.initial_accumulator_value}

    def rule(self, gradient, rate, variable, total, squares):
        total, squares = total + gradient, squares + tf.square(gradient)
        return -rate * total * tf.math.rsqrt(squares), total, squares


class LARS(Momentum):
    """tf.contrib.opt.LARSOptimizer; looked-up rows get plain momentum."""

    def __init__(
        self, learning_rate, momentum=0.9, weight_decay=0.0001, eeta=0.001, epsilon=0.0, name=None
    ):
        super().__init__(learning_rate, momentum, name=name)
        del self.numbers["nesterov"]
        self.numbers.update({"weight_decay": weight_decay, "eeta": eeta, "epsilon": epsilon})
        self.decay, self.eeta, self.epsilon = weight_decay, eeta, epsilon

    def update_step(self, gradient, variable, learning_rate):
        if not isinstance(gradient, tf.IndexedSlices):
            weights, size = tf.norm(tf.convert_to_tensor(variable)), tf.norm(gradient)
            ratio = self.eeta * weights / (size + self.decay * weights + self.epsilon)
            ratio = tf.where((weights > 0) & (size > 0), ratio, 1.0)
            # The rate is part of what accumulates, and the step is taken as it is.
            gradient = learning_rate * ratio * (gradient + self.decay * variable)
            learning_rate = 1.0
        super().update_step(gradient, variable, learning_rate)


class AddSign(Optimizer):
    """tf.contrib.opt.AddSignOptimizer, without sign_decay_fn."""

    def slots(self):
        return {"m": 0.0}

    def shrinks(self):
        return {"m": self.beta}

    def __init__(self, learning_rate=0.1, alpha=1.0, beta=0.9, name=None):
        super().__init__(learning_rate, name, alpha=alpha, beta=beta)

    def factor(self, agreement):
        return self.alpha + agreement

    def rule(self, gradient, rate, variable, m):
        m = self.beta * m + (1 - self.beta) * gradient
        agreement = tf.sign(gradient) * tf.sign(m)
        return variable - rate * self.factor(agreement) * gradient, m


class PowerSign(AddSign):
    """tf.contrib.opt.PowerSignOptimizer, without sign_decay_fn."""

    def __init__(self, learning_rate=0.1, base=2.718281828459045, beta=0.9, name=None):
        Optimizer.__init__(self, learning_rate, name, base=base, beta=beta)

    def factor(self, agreement):
        return tf.pow(self.base, agreement)
