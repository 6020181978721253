"""The class `KerasLoop` that estimator-to-fit writes into a program, as text.

    source = text(tf="tf", e2s="e2s", keras="keras", inspect="inspect")

Each argument is what the file calls that module.
"""

from __future__ import annotations

NAME = "KerasLoop"
# What it uses: the name that it has there if the file has none for it, and the module. Each
# import goes above the ones before it.
NEEDED = {
    "e2s": "estimator2strategy", "keras": "keras", "time": "time", "os": "os", "inspect": "inspect",
}  # fmt: skip
_TEXT = '''

class KerasLoop:
    """An Estimator's `train`, `evaluate` and `predict`, by Keras's `fit`; keep what you need."""

    def __init__(self, model_fn, model_dir=None, config=None, params=None, use_tpu=None,
                 train_batch_size=None, eval_batch_size=None, predict_batch_size=None):
        self.config = config or {e2s}.RunConfig(model_dir)
        self.model_dir, self.params = model_dir or config.model_dir, params
        self.batch_sizes = dict(
            train=train_batch_size, eval=eval_batch_size, infer=predict_batch_size)
        if self.config.tf_random_seed is not None:
            {tf}.compat.v2.random.set_seed(self.config.tf_random_seed)
        self.batches_of_core = False
        self.strategy = self.make_strategy(use_tpu)
        with self.strategy.scope():
            self.model = {e2s}.LegacyModel(model_fn, params, config, use_tpu=use_tpu)
        self.model.compile()  # steps_per_execution=50, say, is faster
        self.step, self.model.train_step = self.model.train_step, self.train_step
        self.writers, self.writes = {{}}, {tf}.compat.v2.Variable(False, trainable=False)
        self.save_steps = self.config.save_checkpoints_steps or 1000
        self.predict_step = {tf}.compat.v2.function(
            lambda batch: self.strategy.run(self.model, (batch,)), autograph=False)

    def make_strategy(self, use_tpu):
        """The strategy of a TPU's cores, or of one device."""
        config, tpu = self.config, getattr(self.config, 'tpu_config', None)
        if config.train_distribute or config.num_worker_replicas > 1:
            raise ValueError('KerasLoop trains on one machine, by itself or on its TPU: keep '
                             'tf.estimator for train_distribute and for several workers.')
        if not use_tpu:
            return {tf}.compat.v2.distribute.get_strategy()
        kinds = {e2s}.InputPipelineConfig
        known = (kinds.PER_HOST_V1, kinds.PER_HOST_V2)
        if tpu and (tpu.num_cores_per_replica or tpu.num_shards == 1
                    or tpu.per_host_input_for_training not in known):
            raise ValueError('KerasLoop trains one replica on each core, with batches of one '
                             'input_fn: keep TPUEstimator for num_cores_per_replica, num_shards=1 '
                             'and other kinds of per_host_input_for_training.')
        # Then each batch of input_fn is that of a core.
        self.batches_of_core = tpu and tpu.per_host_input_for_training == kinds.PER_HOST_V2
        resolver, master = getattr(config, 'cluster', None), config.master
        if master and not resolver:
            resolver = {tf}.compat.v2.distribute.cluster_resolver.TPUClusterResolver(master)
        return {tf}.compat.v2.distribute.TPUStrategy(resolver)

    def dataset(self, input_fn, mode):
        """The batches of an input_fn, which is called as an Estimator calls it."""
        given = dict(params=self.params, mode=mode, config=self.config)
        size, cores = self.batch_sizes[mode], self.strategy.num_replicas_in_sync
        if size:
            if size % cores:
                raise ValueError('A batch of %d cannot be dealt out to %d cores.' % (size, cores))
            asked = size // cores if self.batches_of_core else size
            given['params'] = dict(self.params or {{}}, batch_size=asked)
        names = {inspect}.signature(input_fn).parameters
        found = input_fn(**{{name: given[name] for name in names if name in given}})
        if not isinstance(found, {tf}.compat.v2.data.Dataset):
            raise TypeError('fit takes a Dataset, and %s returned %r.' % (input_fn, type(found)))
        if self.batches_of_core and cores > 1:
            return found.unbatch().batch(size, drop_remainder=mode != 'infer')
        return found

    def restore(self, path=None):
        """Takes a checkpoint's variables, or those of the latest one in model_dir."""
        path = path or {tf}.train.latest_checkpoint(self.model_dir)
        if path:
            self.model.load_checkpoint(path)

    @property
    def global_step(self):
        return int(self.model.legacy_variables['global_step'].numpy())

    def train_step(self, data):
        """A step of the model, which writes model_fn's summaries when they are due."""
        record = {tf}.compat.v2.summary.record_if(self.writes.read_value)
        with self.writer().as_default(), record:
            return self.step(data)

    def writer(self, folder=''):
        """Writes where an Estimator wrote: in model_dir, or in a folder of it."""
        if folder not in self.writers:
            path = {os}.path.join(self.model_dir, folder)
            with {tf}.init_scope():  # not in the graph of a step
                self.writers[folder] = {tf}.compat.v2.summary.create_file_writer(path)
        return self.writers[folder]

    def write(self, values, step, folder=''):
        """Writes summaries, by the tags and in the folder where an Estimator wrote them."""
        kind = {tf}.compat.v1.Summary  # of TF1, as what reads the files may be
        written = [kind.Value(tag=tag, simple_value=float(values[tag])) for tag in values]
        with self.writer(folder).as_default():
            {tf}.compat.v2.summary.experimental.write_raw_pb(
                kind(value=written).SerializeToString(), step)
        self.writer(folder).flush()

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
        loop = SavedAndWritten(self, begin, end, every)
        epochs = 10**9 if end is None else -(-(end - begin) // every)
        self.model.fit(dataset, epochs=epochs, steps_per_epoch=every,
                       callbacks=[loop, *callbacks], shuffle=False, verbose=2, **validation)
        return self

    def train_and_evaluate(self, train_spec, eval_spec):
        """Trains, and evaluates at each checkpoint."""
        held_out = self.dataset(eval_spec.input_fn, 'eval')
        self.train(train_spec.input_fn, max_steps=train_spec.max_steps,
                   validation_data=held_out, validation_steps=eval_spec.steps)
        return self.evaluate(eval_spec.input_fn, eval_spec.steps, name=eval_spec.name), []

    def evaluate(self, input_fn, steps=None, callbacks=(), checkpoint_path=None, name=None):
        self.restore(checkpoint_path)
        results = self.model.evaluate(self.dataset(input_fn, 'eval'), steps=steps, verbose=0,
                                      callbacks=list(callbacks), return_dict=True)
        self.write(results, self.global_step, 'eval_' + name if name else 'eval')
        return {{**results, 'global_step': self.global_step}}

    def predict(self, input_fn, predict_keys=None, callbacks=(), checkpoint_path=None):
        """Yields the predictions of each example."""
        self.restore(checkpoint_path)
        dataset = self.dataset(input_fn, 'infer')
        if isinstance(dataset.element_spec, tuple):
            dataset = dataset.map(lambda features, *labels: features)
        # With batches on the cores ahead of time, TensorFlow hangs if the caller stops early.
        options = {tf}.compat.v2.distribute.InputOptions(experimental_fetch_to_device=False)
        for batch in self.strategy.experimental_distribute_dataset(dataset, options):
            with self.model.naming_failures():
                found = {tf}.nest.map_structure(self.of_all_cores, self.predict_step(batch))
            if isinstance(found, dict):
                kept = {{key: found[key] for key in predict_keys or found}}
                yield from (dict(zip(kept, row)) for row in zip(*kept.values()))
            else:
                yield from found

    def of_all_cores(self, value):
        parts = self.strategy.experimental_local_results(value)
        return {tf}.concat(parts, 0).numpy()


class SavedAndWritten({keras}.callbacks.Callback):
    """Writes checkpoints and summaries in `fit`, as an Estimator did, and ends it in time."""

    def __init__(self, loop, begin, end, every):
        super().__init__()
        self.loop, self.begin, self.end, self.every = loop, begin, end, every
        self.step, self.began = begin, {time}.time()

    def on_train_begin(self, logs=None):
        if not {tf}.train.latest_checkpoint(self.loop.model_dir):
            self.model.save_checkpoint(self.loop.model_dir)

    def is_due(self, steps):
        return steps and (self.step - self.begin) % steps == 0

    def on_train_batch_begin(self, batch, logs=None):
        self.writes = bool(self.is_due(self.loop.config.save_summary_steps))
        self.loop.writes.assign(self.writes)
        if self.writes:
            self.model.reset_metrics()  # the loss is that of the next step, not a mean

    def on_train_batch_end(self, batch, logs=None):
        self.step = self.loop.global_step
        writes_loss = self.writes and 'loss' not in self.model.summaries
        values = {{'loss': logs['loss']}} if writes_loss else {{}}
        if logs['loss'] != logs['loss']:
            raise {tf}.train.NanLossDuringTrainingError
        if self.is_due(self.loop.config.log_step_count_steps):
            rate = self.loop.config.log_step_count_steps / ({time}.time() - self.began)
            values['global_step/sec'], self.began = rate, {time}.time()
            if self.loop.batch_sizes['train']:
                values['examples/sec'] = rate * self.loop.batch_sizes['train']
        if values:
            self.loop.write(values, self.step)
        if self.step >= (self.end or float('inf')):
            self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        self.model.save_checkpoint(self.loop.model_dir)
        held_out = {{tag[4:]: logs[tag] for tag in logs if tag.startswith('val_')}}
        if held_out:
            self.loop.write(held_out, self.step, 'eval')
        if self.step < self.begin + (epoch + 1) * self.every:
            self.model.stop_training = True  # the input has ended
'''


def text(tf: str | None, **modules: str) -> str:
    """The class and its callback, with empty lines above.

    Args:
        tf: The name of TensorFlow in the file.
        modules: The names there of the modules in `NEEDED`.
    """
    return _TEXT.format(tf=tf, **modules)
