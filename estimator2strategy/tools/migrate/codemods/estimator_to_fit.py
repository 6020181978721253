"""An Estimator's `train`, `evaluate` and `predict` become `fit` and its kin of a LegacyModel."""

import ast
import dataclasses

from estimator2strategy.tools.migrate.codemod import (
    SafetyTier,
    Sample,
    Todo,
    codemod,
)

_ESTIMATORS = (
    "tf.estimator.Estimator",
    "tf.estimator.tpu.TPUEstimator",
    "tf.contrib.tpu.TPUEstimator",
)
# The arguments that the loop takes, in their order, as the Estimators do.
_ARGUMENTS = (
    *("model_fn", "model_dir", "config", "params", "use_tpu"),
    *("train_batch_size", "eval_batch_size", "predict_batch_size"),
)
# Method -> the arguments that it has in the loop too; `hooks` become `callbacks`.
_METHODS = {
    "train": ("input_fn", "hooks", "steps", "max_steps"),
    "evaluate": ("input_fn", "steps", "hooks", "checkpoint_path"),
    "predict": ("input_fn", "predict_keys", "hooks", "checkpoint_path"),
}
_SPECS = {
    "tf.estimator.TrainSpec": ("input_fn", "max_steps"),
    "tf.estimator.EvalSpec": (
        *("input_fn", "steps", "name"),
        *("start_delay_secs", "throttle_secs"),
    ),
}
_TOGETHER = "tf.estimator.train_and_evaluate"
_NAME = "KerasLoop"
# What the class uses: the module, and the name that it has there if the file has none for it.
_NEEDED = {"e2s": "estimator2strategy", "keras": "keras", "inspect": "inspect"}
_CLASS = '''

class KerasLoop:
    """An Estimator's `train`, `evaluate` and `predict`, by Keras's `fit`; keep what you need."""

    def __init__(self, model_fn, model_dir=None, config=None, params=None, use_tpu=None,
                 train_batch_size=None, eval_batch_size=None, predict_batch_size=None):
        self.model = {e2s}.LegacyModel(model_fn, params, config, use_tpu=use_tpu)
        self.model.compile()  # steps_per_execution=50, say, is faster
        self.model_dir, self.params = model_dir or config.model_dir, params
        self.batch_sizes = dict(
            train=train_batch_size, eval=eval_batch_size, infer=predict_batch_size)
        self.save_steps = (config and config.save_checkpoints_steps) or 1000
        if config and config.tf_random_seed is not None:
            {tf}.compat.v2.random.set_seed(config.tf_random_seed)

    def dataset(self, input_fn, mode):
        """The batches of an input_fn, which is called as an Estimator calls it."""
        given = dict(params=self.params, mode=mode)
        if self.batch_sizes[mode]:
            given['params'] = dict(self.params or {{}}, batch_size=self.batch_sizes[mode])
        names = {inspect}.signature(input_fn).parameters
        return input_fn(**{{name: given[name] for name in names if name in given}})

    def restore(self, path=None):
        """Takes a checkpoint's variables, or those of the latest one in model_dir."""
        path = path or {tf}.train.latest_checkpoint(self.model_dir)
        if path:
            self.model.load_checkpoint(path)

    @property
    def global_step(self):
        return int(self.model.legacy_variables['global_step'].numpy())

    def train(self, input_fn, callbacks=(), steps=None, max_steps=None, **validation):
        """Trains until max_steps, for so many steps, or until the input ends."""
        dataset = self.dataset(input_fn, 'train')
        self.restore()
        self.model.build(dataset)
        begin = self.global_step
        end = max_steps if steps is None else begin + steps
        if end is not None and begin >= end:
            return self
        every = self.save_steps if end is None else min(self.save_steps, end - begin)

        def after_batch(batch, logs):
            if self.global_step == end:
                self.model.stop_training = True

        def after_epoch(epoch, logs):
            self.model.save_checkpoint(self.model_dir)
            if self.global_step < begin + (epoch + 1) * every:
                self.model.stop_training = True  # the input has ended

        loop = {keras}.callbacks.LambdaCallback(
            on_train_batch_end=after_batch, on_epoch_end=after_epoch)
        epochs = 10**9 if end is None else -(-(end - begin) // every)
        self.model.fit(dataset, epochs=epochs, steps_per_epoch=every,
                       callbacks=[loop, *callbacks], shuffle=False, verbose=2, **validation)
        return self

    def train_and_evaluate(self, train_spec, eval_spec):
        """Trains, and evaluates at each checkpoint."""
        held_out = self.dataset(eval_spec.input_fn, 'eval')
        self.train(train_spec.input_fn, max_steps=train_spec.max_steps,
                   validation_data=held_out, validation_steps=eval_spec.steps)
        return self.evaluate(eval_spec.input_fn, eval_spec.steps), []

    def evaluate(self, input_fn, steps=None, callbacks=(), checkpoint_path=None):
        self.restore(checkpoint_path)
        results = self.model.evaluate(self.dataset(input_fn, 'eval'), steps=steps, verbose=0,
                                      callbacks=list(callbacks), return_dict=True)
        return {{**results, 'global_step': self.global_step}}

    def predict(self, input_fn, predict_keys=None, callbacks=(), checkpoint_path=None):
        """Yields the predictions of each example."""
        self.restore(checkpoint_path)
        for batch in self.dataset(input_fn, 'infer'):
            features = batch[0] if isinstance(batch, tuple) else batch
            found = self.model.predict_on_batch(features)
            if isinstance(found, dict):
                kept = {{key: found[key] for key in predict_keys or found}}
                yield from (dict(zip(kept, row)) for row in zip(*kept.values()))
            else:
                yield from found
'''
_HEAD = "import estimator2strategy as e2s\nimport estimator2strategy.tf1 as tf\n"
_NEW_HEAD = (
    "import inspect\nimport keras\nimport estimator2strategy as e2s\n"
    "import estimator2strategy.tf1 as tf\n"
)
_WRITTEN = _CLASS.format(e2s="e2s", keras="keras", inspect="inspect", tf="tf")


@codemod(
    "estimator-to-fit",
    stage=7,
    tier=SafetyTier.REVIEW,
    title="Trains, evaluates and predicts with Keras's loops, in place of an Estimator's",
    why="Adds a class `KerasLoop` to the file: the model_fn as a LegacyModel, in `fit`, "
    "`evaluate` and `predict`, with the Estimator's arguments, so that the calls stay as they "
    "are. Take it apart from there: what a program needs of it is a few lines. Hooks of the "
    "program are given as the callbacks that hooks-to-callbacks made beside them. Where an "
    "Estimator does more (exports, warm starts, TensorFlow's own hooks, a Session beside it) it "
    "stays, with a mark.",
    proof="The same losses as the Estimator's, from the same checkpoint. What is gone: summaries "
    "(callbacks.TensorBoard), the host_call, checkpoints by the clock, and the place in the input "
    "when training is resumed. input_fn is called in eager mode, and returns a dataset. "
    "Make it in `strategy.scope()` to train on several devices: batches are then global.",
    samples=[
        Sample(
            "import estimator2strategy.tf1 as tf\n\n\n"
            "def main(model_fn, input_fn):\n"
            "    estimator = tf.estimator.Estimator(model_fn, 'model', params={'rate': 0.1})\n"
            "    estimator.train(input_fn, max_steps=1000)\n"
            "    print(estimator.evaluate(input_fn, steps=10))\n",
            "import inspect\nimport keras\nimport estimator2strategy as e2s\n"
            "import estimator2strategy.tf1 as tf\n\n\n"
            "def main(model_fn, input_fn):\n"
            "    estimator = KerasLoop(model_fn, 'model', params={'rate': 0.1})\n"
            "    estimator.train(input_fn, max_steps=1000)\n"
            "    print(estimator.evaluate(input_fn, steps=10))\n" + _WRITTEN,
        ),
    ],
    unchanged=[
        "import estimator2strategy.tf1 as tf\n\n"
        "estimator = tf.estimator.DNNClassifier([10], columns, 'model')\n"
        "estimator.train(input_fn)\n",
        "import keras\n\nmodel = keras.Sequential()\nmodel.fit(data)\nmodel.evaluate(data)\n",
    ],
)
def find(module):
    if module.tf is None:
        return
    made = list(module.calls(*_ESTIMATORS))
    if made:
        loops = _Loops(module, made)
        reasons = list(dict.fromkeys(loops.reasons()))
        for call in made if reasons else ():
            yield Todo(call.node, f"the Estimator stays: {'; '.join(reasons)}")
        if not reasons:
            yield from loops.changes()
        return
    loops = [call for call in module.calls() if call.last == _NAME]
    if loops and _NAME not in module.source.scope.bindings:
        yield _with_class(module, _outermost(loops[-1].node))


def _with_class(module, statement):
    """The class below a statement, and what it imports."""
    spelled = {name: module.bound(full) for name, full in _NEEDED.items()}
    missing = {name: module.free(name) for name, bound in spelled.items() if bound is None}
    imports = tuple((_NEEDED[name], None, _alias(name, free)) for name, free in missing.items())
    spelled |= missing
    change = module.append_after(statement, _CLASS.format(tf=module.tf, **spelled))
    return dataclasses.replace(change, imports=imports)


def _alias(name, free):
    return None if _NEEDED[name] == free else free


class _Loops:
    """The Estimators of a file, and what is done with them."""

    def __init__(self, module, made):
        self.module, self.made = module, made
        self.names = _names_of(made, module.source)
        self.used = [
            call
            for call in module.source.calls
            if isinstance(call.node.func, ast.Attribute)
            and ast.unparse(call.node.func.value) in self.names
        ]
        self.together = list(module.calls(_TOGETHER))

    def reasons(self):
        """Why they have to stay, if so."""
        if not self._is_eager():
            yield "change the import first (--stage 2): under `e2s run` a program is in graph mode"
        if self.module.facts.has_sessions:
            yield "there are Sessions beside it"
        for call in self.made:
            yield from self._of_arguments(call)
        for call in self.used:
            yield from self._of_method(call)
        for call in self.module.calls(*_SPECS):
            known = _SPECS[self.module.name(call.node.func, call.scope)]
            yield from _others(call, known, "a callback, or what stands behind fit, has to do it")
        for call in self.together:
            if len(call.node.args) != 3 or ast.unparse(call.node.args[0]) not in self.names:
                yield "train_and_evaluate is given it in a way that is not understood"

    def _is_eager(self):
        known = self.module.source.resolve(ast.Name(self.module.tf), self.module.source.scope)
        return known == "estimator2strategy.tf1"

    def _of_arguments(self, call):
        if call.is_open:
            yield "its arguments cannot be seen"
        yield from _others(call, _ARGUMENTS, "LegacyModel has none")
        if call.argument("model_dir", 1) is None and call.argument("config", 2) is None:
            yield "it has no model_dir: name one"

    def _of_method(self, call):
        known = _METHODS.get(call.last)
        if known is None:
            yield f"{call.last} is called on it"
            return
        yield from _others(call, known, "fit has none")
        hooks = call.argument("hooks", known.index("hooks"))
        if hooks is not None and self._callbacks(hooks) is None:
            yield "its hooks are not all made in the call, of classes with a callback beside them"

    def _callbacks(self, hooks):
        """Node of a hook's class -> the callback's; None if one is not known."""
        if not isinstance(hooks, (ast.List, ast.Tuple)):
            return None
        found = {}
        for hook in hooks.elts:
            if not isinstance(hook, ast.Call) or not isinstance(hook.func, ast.Name):
                return None
            callback = f"{hook.func.id}Callback"
            if callback not in self.module.source.scope.bindings:
                return None
            found[hook.func] = callback
        return found

    def changes(self):
        module = self.module
        for call in self.made:
            yield self._renamed(call)
        for call in self.used:
            hooks = call.argument("hooks", _METHODS[call.last].index("hooks"))
            if hooks is not None:
                for node, callback in self._callbacks(hooks).items():
                    yield module.replace(node, callback)
                if any(keyword.arg == "hooks" for keyword in call.node.keywords):
                    yield module.rename_keyword(call, "hooks", "callbacks")
        for call in self.together:
            estimator, *specs = map(module.written, call.node.args)
            text = f"{estimator}.train_and_evaluate({', '.join(specs)})"
            yield module.replace(call.node, text)

    def _renamed(self, call):
        """The loop in an Estimator's place; TPUEstimator has use_tpu=True where it is not said."""
        module = self.module
        if call.last == "Estimator" or call.argument("use_tpu", 4) is not None:
            return module.replace(call.node.func, _NAME)
        text = module.written_with(call.node, {call.node.func: _NAME})
        given = text.removesuffix(")").rstrip()
        comma = "" if given.endswith(("(", ",")) else ","
        return module.replace(call.node, f"{given}{comma} use_tpu=True)")


def _names_of(made, source):
    """The names and attributes to which the Estimators are assigned."""
    found, functions = set(), set()
    for call in made:
        found |= _targets(call.node)
        if isinstance(call.node.parent, ast.Return):
            functions.add(call.scope.name.rpartition(".")[2])
    for call in source.calls:  # `estimator = build_estimator(...)`
        if isinstance(call.node.func, ast.Name) and call.node.func.id in functions:
            found |= _targets(call.node)
    return found


def _targets(node):
    parent = node.parent
    return {ast.unparse(t) for t in parent.targets} if isinstance(parent, ast.Assign) else set()


def _others(call, known, why):
    """The arguments of a call beside the known ones."""
    for keyword in call.node.keywords:
        if keyword.arg is not None and keyword.arg not in known:
            yield f"it is given {keyword.arg}: {why}"
    if len(call.node.args) > len(known):
        yield f"it is given more than {len(known)} arguments"


def _outermost(node):
    while not isinstance(node.parent, ast.Module):
        node = node.parent
    return node
