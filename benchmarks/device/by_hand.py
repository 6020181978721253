"""The steps that `export` exports, written by hand in JAX, on the same variables by name.

    step = STEPS["mnist"]
    state, loss = step(state, batch, settings)

`state` is {name of a variable in the program: value}; `batch` has the feeds in their order.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

MOMENTUM = 0.9


def cross_entropy(logits, labels):
    """The mean of sparse softmax cross entropies."""
    log_probs = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(log_probs, labels[:, None], axis=1))


def conv(images, kernel, stride=1):
    return lax.conv_general_dilated(
        images, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def trained(state):
    """The variables that the optimizer trains: those that have a slot."""
    slots = ("/Momentum", "/adam_m")
    return {n: v for n, v in state.items() if any(n + slot in state for slot in slots)}


def momentum_update(state, gradients, rate):
    """The variables and slots after an update of `MomentumOptimizer`."""
    after = dict(state)
    for name, gradient in gradients.items():
        slot = MOMENTUM * state[f"{name}/Momentum"] + gradient
        after[f"{name}/Momentum"] = slot
        after[name] = state[name] - rate * slot
    return after


# --- examples/mnist_tpu --------------------------------------------------------------------------


def mnist(state, batch, settings):
    images, labels = batch

    def loss_of(weights):
        def layer(net, name):
            out = conv(net, weights[f"{name}/kernel"]) + weights[f"{name}/bias"]
            return jax.nn.relu(out)

        def pool(net):
            window = (1, 2, 2, 1)
            return lax.reduce_window(net, -jnp.inf, lax.max, window, window, "VALID")

        net = layer(layer(images, "conv1"), "conv2")
        net = pool(layer(pool(net), "conv3"))
        net = net.reshape(len(net), -1)
        net = jax.nn.relu(net @ weights["hidden/kernel"] + weights["hidden/bias"])
        return cross_entropy(net @ weights["logits/kernel"] + weights["logits/bias"], labels)

    loss, gradients = jax.value_and_grad(loss_of)(trained(state))
    rate = settings["rate"] * 0.7 ** (state["global_step"].astype(jnp.float32) / 100)
    after = momentum_update(state, gradients, rate)
    after["global_step"] = state["global_step"] + 1
    return after, loss


# --- benchmarks/resnet ---------------------------------------------------------------------------


def resnet(state, batch, settings):
    images, labels = batch

    def loss_of(weights):
        numbers, moving = iter(range(1, 1000)), {}

        def variable():
            name = f"variable_{next(numbers)}"
            return name, weights.get(name, state[name])

        def norm(net):
            (_, scale), (_, offset) = variable(), variable()
            mean, variance = jnp.mean(net, (0, 1, 2)), jnp.var(net, (0, 1, 2))
            count = net.size // net.shape[-1]
            for value in (mean, variance * (count / (count - 1))):
                name, old = variable()
                moving[name] = 0.9 * old + 0.1 * value
            return (net - mean) * lax.rsqrt(variance + 1e-5) * scale + offset

        def normed(net, stride):
            return norm(conv(net, variable()[1], stride))

        net = jax.nn.relu(normed(images, 1))
        for number in range(4):
            for block in range(2):
                stride = 2 if number and not block else 1
                shortcut = normed(net, stride) if stride > 1 else net
                net = jax.nn.relu(normed(jax.nn.relu(normed(net, stride)), 1) + shortcut)
        net = jnp.mean(net, (1, 2))
        return cross_entropy(net @ variable()[1] + variable()[1], labels), moving

    (loss, moving), gradients = jax.value_and_grad(loss_of, has_aux=True)(trained(state))
    after = momentum_update({**state, **moving}, gradients, settings["rate"])
    after["global_step"] = state["global_step"] + 1
    return after, loss


# --- google-research/bert ------------------------------------------------------------------------


def bert(state, batch, settings):
    ids, mask, _, labels, segments = batch  # by their names in run_classifier
    words_name = "bert/embeddings/word_embeddings"
    weights = trained(state)
    words = weights.pop(words_name)

    def loss_of(weights, looked_up):
        net = _embedded(weights, looked_up, segments)
        net = _encoded(weights, net, mask, settings["heads"], settings["layers"])
        pooled = jnp.tanh(_dense(weights, "bert/pooler/dense", net[:, 0]))
        logits = pooled @ weights["output_weights"].T + weights["output_bias"]
        return cross_entropy(logits, labels)

    looked_up = words[ids]
    loss, (gradients, of_lookup) = jax.value_and_grad(loss_of, argnums=(0, 1))(weights, looked_up)
    # TensorFlow's norm is that of the gradient of what was looked up, not of the table.
    squares = [jnp.sum(g * g) for g in (*gradients.values(), of_lookup)]
    scale = 1.0 / jnp.maximum(jnp.sqrt(sum(squares)), 1.0)
    gradients[words_name] = jnp.zeros_like(words).at[ids].add(of_lookup)
    return _adam(state, gradients, scale, _rate(state["global_step"], settings)), loss


def _dense(weights, name, net):
    return net @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]


def _layer_norm(weights, name, net):
    mean = jnp.mean(net, -1, keepdims=True)
    variance = jnp.mean(jnp.square(net - mean), -1, keepdims=True)
    normal = (net - mean) * lax.rsqrt(variance + 1e-12)
    return normal * weights[f"{name}/LayerNorm/gamma"] + weights[f"{name}/LayerNorm/beta"]


def _embedded(weights, looked_up, segments):
    name, length = "bert/embeddings", looked_up.shape[1]
    table = weights[f"{name}/token_type_embeddings"]
    net = looked_up + jax.nn.one_hot(segments, len(table)) @ table
    return _layer_norm(weights, name, net + weights[f"{name}/position_embeddings"][:length])


def _encoded(weights, net, mask, heads, layers):
    batch, length, width = net.shape
    adder = (1.0 - mask.astype(jnp.float32))[:, None, None, :] * -10000.0

    def split(tensor):
        return tensor.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    for number in range(layers):
        name = f"bert/encoder/layer_{number}"
        query, key, value = (
            split(_dense(weights, f"{name}/attention/self/{part}", net))
            for part in ("query", "key", "value")
        )
        scores = jnp.einsum("bhqd,bhkd->bhqk", query, key) / (width // heads) ** 0.5 + adder
        context = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), value)
        context = context.transpose(0, 2, 1, 3).reshape(batch, length, width)
        attended = _dense(weights, f"{name}/attention/output/dense", context)
        net = _layer_norm(weights, f"{name}/attention/output", attended + net)
        inner = jax.nn.gelu(_dense(weights, f"{name}/intermediate/dense", net), approximate=True)
        net = _layer_norm(
            weights, f"{name}/output", _dense(weights, f"{name}/output/dense", inner) + net
        )
    return net


def _rate(step, settings):
    done = step.astype(jnp.float32)
    decayed = settings["rate"] * (1 - jnp.minimum(done / settings["steps"], 1.0))
    if not settings["warmup"]:
        return decayed
    return jnp.where(
        done < settings["warmup"], settings["rate"] * done / settings["warmup"], decayed
    )


def _adam(state, gradients, scale, rate):
    after = dict(state)
    for name, gradient in gradients.items():
        gradient = gradient * scale
        mean = 0.9 * state[f"{name}/adam_m"] + 0.1 * gradient
        square = 0.999 * state[f"{name}/adam_v"] + 0.001 * jnp.square(gradient)
        update = mean / (jnp.sqrt(square) + 1e-6)
        if "LayerNorm" not in name and "bias" not in name:
            update = update + 0.01 * state[name]
        after[name] = state[name] - rate * update
        after[f"{name}/adam_m"], after[f"{name}/adam_v"] = mean, square
    after["global_step"] = state["global_step"] + 1
    return after


STEPS = {"mnist": mnist, "resnet": resnet, "bert": bert}
