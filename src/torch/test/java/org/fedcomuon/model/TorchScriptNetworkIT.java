package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;
import org.bytedeco.pytorch.JitModule;
import org.bytedeco.pytorch.QualifiedName;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Models from files that libtorch writes here itself, against the same network as a list of layers. */
class TorchScriptNetworkIT {
    private static final List<Integer> IMAGE = List.of(1, 8, 8);
    private static final int CLASSES = 3;

    private static final String CNN = """
            def forward(self, x):
                x = torch.relu(torch.max_pool2d(torch.conv2d(x, self.conv1.weight, self.conv1.bias, padding=1), [2, 2]))
                x = torch.flatten(x, 1)
                x = torch.relu(torch.linear(x, self.dense1.weight, self.dense1.bias))
                return torch.linear(x, self.dense2.weight, self.dense2.bias)
            """;

    @TempDir
    private Path directory;

    private static Sequential sequential() {
        return new Sequential(
                IMAGE,
                List.of(
                        Layer.conv(4, 3).padding(1),
                        Layer.maxPool(2),
                        Layer.relu(),
                        Layer.flatten(),
                        Layer.dense(10),
                        Layer.relu(),
                        Layer.dense(CLASSES)),
                CLASSES);
    }

    private static Tensor trainable(Tensor tensor) {
        tensor.set_requires_grad(true);
        return tensor;
    }

    private static Tensor tensor(Floats values, Block block) {
        long[] shape = block.shape().stream().mapToLong(side -> side).toArray();
        return trainable(Tensor.create(values.toArray()).view(shape));
    }

    private static JitModule module(String name) {
        return new JitModule(new QualifiedName(name));
    }

    private Path saved(JitModule module) {
        Path file = directory.resolve("model.pt");
        module.save(file.toString());
        return file;
    }

    /** The network of {@link #sequential}, with these weights. */
    private Path cnn(Floats weights) {
        Torch.claim();
        Layout layout = sequential().layout();
        var w = new Point(layout, weights);
        JitModule module = module("Cnn");
        Map<String, JitModule> parts = new LinkedHashMap<>();
        for (Block block : layout.blocks()) {
            String[] path = block.name().split("\\.", -1);
            parts.computeIfAbsent(path[0], TorchScriptNetworkIT::module)
                    .register_parameter(path[1], tensor(w.block(block.name()), block), false);
        }
        parts.forEach(module::register_module);
        module.define(CNN);
        return saved(module);
    }

    private static Examples images(int count) {
        var random = new SplittableRandom(4);
        var pixels = new float[count * 64];
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = (float) random.nextGaussian();
        }
        return Examples.of(pixels, random.ints(count, 0, CLASSES).toArray(), 1, 8, 8);
    }

    @Test
    void isTheNetworkThatWasSaved() throws Exception {
        Floats initial = sequential().initial(7);
        var network = TorchScriptNetwork.load(cnn(initial), IMAGE, CLASSES);
        assertThat(network.layout()).isEqualTo(sequential().layout());
        assertThat(network.initial(1).toArray()).isEqualTo(initial.toArray());
        assertThat(network.initial(2).toArray()).isEqualTo(initial.toArray());
        assertThat(network.activations(1)).isEmpty();
        Examples examples = images(60);
        float[] expected = SequentialIT.trained(sequential(), examples, initial);
        float[] actual = SequentialIT.trained(network, examples, network.initial(0));
        assertThat(actual).containsExactly(expected, within(1e-5f));
        assertThat(actual).isNotEqualTo(initial.toArray());
        assertThat(network.initial(0).toArray()).isEqualTo(initial.toArray()); // training does not change it
    }

    private static Point point(Layout layout, Floats values) {
        return new Point(layout, values);
    }

    @Test
    void secondDerivativesAreThoseOfTheLayers() throws Exception {
        Floats initial = sequential().initial(7);
        var network = TorchScriptNetwork.load(cnn(initial), IMAGE, CLASSES);
        Layout layout = network.layout();
        Point w = point(layout, initial);
        Floats along = Floats.zeros(layout.length());
        var random = new SplittableRandom(3);
        for (long i = 0; i < along.length(); i++) {
            along.set(i, random.nextGaussian());
        }
        var products = new ArrayList<double[]>();
        for (Network each : List.of(network, sequential())) {
            var loss = new NetworkLoss(each, images(6), xi -> new int[] {0, 1, 2, 3, 4, 5});
            Point product = point(layout, Floats.zeros(layout.length()));
            loss.hessianProduct(TinyModels.sample(1), w, point(layout, along), product);
            products.add(DoublePrecision.widened(product.values().toArray()));
            var adapted = new AdaptedLoss(
                    each, images(6), xi -> new int[] {0, 1, 2}, xi -> new int[] {3, 4, 5}, Adaptation.exact(0.4));
            adapted.evaluate(TinyModels.sample(1), w, product);
            products.add(DoublePrecision.widened(product.values().toArray()));
        }
        assertThat(DoublePrecision.distance(products.get(0), products.get(2))).isLessThan(1e-5);
        assertThat(DoublePrecision.distance(products.get(1), products.get(3))).isLessThan(1e-5);
    }

    /** Each with its own parameters, at the same time: bits are those of one thread alone, from the first call on. */
    @Test
    void threadsDoNotMix() throws Exception {
        var network = TorchScriptNetwork.load(cnn(sequential().initial(7)), IMAGE, CLASSES);
        Layout layout = network.layout();
        int count = 4;
        var points = new ArrayList<Point>();
        var expected = new ArrayList<float[]>();
        Sample xi = TinyModels.sample(1);
        for (int i = 0; i < count; i++) {
            points.add(point(layout, sequential().initial(100 + i)));
            Point gradient = point(layout, Floats.zeros(layout.length()));
            new NetworkLoss(network, images(6), _ -> new int[] {0, 1, 2, 3}).evaluate(xi, points.get(i), gradient);
            expected.add(gradient.values().toArray());
        }
        var wrong = new ConcurrentLinkedQueue<String>();
        var threads = new ArrayList<Thread>();
        for (int i = 0; i < count; i++) {
            int mine = i;
            threads.add(Thread.ofPlatform().start(() -> {
                var loss = new NetworkLoss(network, images(6), _ -> new int[] {0, 1, 2, 3});
                Point gradient = point(layout, Floats.zeros(layout.length()));
                for (int repeat = 0; repeat < 50; repeat++) {
                    loss.evaluate(xi, points.get(mine), gradient);
                    if (!Arrays.equals(gradient.values().toArray(), expected.get(mine))) {
                        wrong.add("thread %d, call %d".formatted(mine, repeat));
                    }
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(wrong).isEmpty();
    }

    @Test
    void buffersAndFrozenParametersStay() throws Exception {
        Torch.claim();
        JitModule module = module("Scaled");
        module.register_parameter(
                "weight", trainable(Tensor.create(1f, 2, 3, 4, 5, 6).view(3, 2)), false);
        module.register_parameter("gain", trainable(Tensor.create(2f).squeeze()), false); // a scalar
        module.register_parameter("frozen", Tensor.create(10f, 20f, 30f), false);
        module.register_buffer("mean", Tensor.create(0.5f, 0.25f));
        module.define("""
                def forward(self, x):
                    return torch.linear(x - self.mean, self.weight) * self.gain + self.frozen
                """);
        var network = TorchScriptNetwork.load(saved(module), List.of(2), 3);
        assertThat(network.layout().blocks()).containsExactly(Block.matrix("weight", 3, 2), Block.vector("gain", 1));
        assertThat(network.initial(0).toArray()).containsExactly(1, 2, 3, 4, 5, 6, 2);
        Point w = point(network.layout(), network.initial(0));
        w.values().set(6, 3.0);
        Tensor y = network.logits(Parameters.of(w), Tensor.create(1.5f, 1.25f).view(1, 2), Dropout.none());
        assertThat(y.data_ptr_float().get(0)).isEqualTo(3 * (1 + 2) + 10);
        assertThat(y.data_ptr_float().get(2)).isEqualTo(3 * (5 + 6) + 30);
    }

    @Test
    void tiedParametersAreOneBlock() throws Exception {
        Torch.claim();
        Tensor shared = trainable(Tensor.create(1f, 2, 3, 4).view(2, 2));
        JitModule module = module("Tied");
        module.register_parameter("first", shared, false);
        module.register_parameter("second", shared, false);
        module.define("""
                def forward(self, x):
                    return torch.linear(torch.linear(x, self.first), self.second)
                """);
        var network = TorchScriptNetwork.load(saved(module), List.of(2), 2);
        assertThat(network.layout().blocks()).containsExactly(Block.matrix("first", 2, 2));
        Point w = point(network.layout(), Floats.zeros(4));
        w.values().set(2f, 0f, 0f, 3f);
        Tensor y = network.logits(Parameters.of(w), Tensor.create(1f, 1f).view(1, 2), Dropout.none());
        assertThat(y.data_ptr_float().get(0)).isEqualTo(4);
        assertThat(y.data_ptr_float().get(1)).isEqualTo(9);
    }

    @Test
    void modelsOfWordsTakeNumbersOfAnyType() throws Exception {
        Torch.claim();
        JitModule module = module("Words");
        module.register_parameter(
                "table", trainable(Tensor.create(1f, 2, 3, 4, 5, 6).view(3, 2)), false);
        module.define("""
                def forward(self, x):
                    return torch.mean(torch.embedding(self.table, x), 1)
                """);
        var network = TorchScriptNetwork.load(saved(module), List.of(4), 2);
        Parameters w = Parameters.of(point(network.layout(), network.initial(0)));
        Tensor y = network.logits(w, Tensor.create(0f, 0f, 2f, 2f).view(1, 4), Dropout.none());
        assertThat(y.data_ptr_float().get(0)).isEqualTo(3);
    }

    private void assertRefused(Path file, String message) {
        assertThatThrownBy(() -> TorchScriptNetwork.load(file, IMAGE, CLASSES))
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(file + ": ")
                .hasMessageContaining(message)
                .satisfies(e -> assertThat(e.getMessage())
                        .hasSizeLessThan(500)
                        .doesNotContain("\n", "Exception raised", "frame #"));
    }

    private Path written(String content) throws IOException {
        return Files.writeString(directory.resolve("other.pt"), content);
    }

    @Test
    void otherFilesAreRefused() throws Exception {
        assertRefused(directory.resolve("none.pt"), "does not exist");
        assertRefused(directory, "is not a file");
        assertRefused(written(""), "is not a zip archive; a file of torch.jit.script(model).save(...) is needed");
        assertRefused(written("weights"), "is not a zip archive");
        assertRefused(written("PK\3\4 and nothing else"), "is a damaged zip archive");
        Path archive = directory.resolve("archive.pt");
        try (var out = new ZipOutputStream(Files.newOutputStream(archive))) {
            out.putNextEntry(new ZipEntry("a/readme.txt"));
            out.write(new byte[10]);
        }
        assertRefused(archive, "is an archive, but not of TorchScript");
        try (var out = new ZipOutputStream(Files.newOutputStream(archive))) {
            out.putNextEntry(new ZipEntry("model/data.pkl"));
            out.write(new byte[10]);
        }
        assertRefused(archive, "has weights, as torch.save writes them, but not the model's code");
        try (var out = new ZipOutputStream(Files.newOutputStream(archive))) {
            for (String name : List.of("model/data.pkl", "model/constants.pkl", "model/version")) {
                out.putNextEntry(new ZipEntry(name));
                out.write("garbage".getBytes(StandardCharsets.US_ASCII));
            }
        }
        assertRefused(archive, "libtorch cannot read it: ");
        try (var out = new ZipOutputStream(Files.newOutputStream(archive))) {
            for (String name : List.of("model/data.pkl", "model/constants.pkl")) {
                out.putNextEntry(new ZipEntry(name));
                out.write(new byte[20 << 20]);
            }
        }
        assertRefused(archive, "claims to contain more than it can");
    }

    @Test
    void modelsThatCannotBeTrainedAreRefused() {
        Torch.claim();
        String identity = """
                def forward(self, x):
                    return torch.flatten(x, 1)
                """;
        JitModule none = module("None1");
        none.define(identity);
        assertRefused(saved(none), "its model has no parameters");

        JitModule frozen = module("Frozen");
        frozen.register_parameter("weight", Tensor.create(1f, 2f), false);
        frozen.define(identity);
        assertRefused(saved(frozen), "none of the 1 parameters of its model requires a gradient");

        JitModule integers = module("Integers");
        integers.register_parameter("weight", Tensor.create(1L, 2L), false);
        integers.define(identity);
        assertRefused(saved(integers), "parameter 'weight' is of type Long; float32 is needed");

        JitModule doubles = module("Doubles");
        doubles.register_parameter("weight", trainable(Tensor.create(1.0, 2.0)), false);
        doubles.define(identity);
        assertRefused(saved(doubles), "parameter 'weight' is of type Double; float32 is needed");

        JitModule mute = module("Mute");
        mute.register_parameter("weight", trainable(Tensor.create(1f, 2f)), false);
        assertRefused(saved(mute), "its model has no method 'forward'");
    }

    private Path withResult(String expression) {
        JitModule module = module("Result");
        module.register_parameter("weight", trainable(torch.zeros(CLASSES, 64)), false);
        module.define("def forward(self, x):\n    return %s\n".formatted(expression));
        return saved(module);
    }

    @Test
    void otherResultsAreRefused() {
        Torch.claim();
        assertRefused(
                withResult("x"),
                "its model has the result 2 x 1 x 8 x 8 for an input of floats 2 x 1 x 8 x 8; 2 x 3 is needed, a logit"
                        + " per class");
        assertRefused(withResult("torch.linear(torch.flatten(x, 1), self.weight[:2])"), "has the result 2 x 2");
        assertRefused(withResult("torch.linear(torch.flatten(x), self.weight)"), "its model fails with");
        assertRefused(withResult("[x, x]"), "its model returns");
        assertRefused(
                withResult("torch.linear(torch.flatten(x, 1), self.weight) + torch.rand([2, 3])"),
                "must not draw random numbers");
        // As tracing keeps it.
        assertRefused(
                withResult("torch.linear(torch.reshape(x, [2, 64]), self.weight)"),
                "its model fails with an input of floats 3 x 1 x 8 x 8");
    }

    /** Whatever is changed, the sums are wrong; and where the sums are right again, libtorch refuses or reads it. */
    @Test
    void damagedFilesAreRefused() throws Exception {
        Path file = cnn(sequential().initial(7));
        byte[] good = Files.readAllBytes(file);
        var random = new SplittableRandom(5);
        int refused = 0;
        for (int i = 0; i < 100; i++) {
            byte[] bad = good.clone();
            bad[random.nextInt(bad.length)] ^= (byte) (1 << random.nextInt(8));
            Files.write(file, i % 4 == 3 ? Arrays.copyOf(good, random.nextInt(good.length)) : bad);
            try {
                TorchScriptNetwork.load(file, IMAGE, CLASSES); // padding between the parts counts for nothing
            } catch (MalformedFileException e) {
                refused++;
                assertThat(e.getMessage()).startsWith(file + ": ").doesNotContain("\n");
            }
        }
        assertThat(refused).isGreaterThan(25);
    }

    @Test
    void partsThatAreWrongThoughTheirSumsAreRightAreRefused() throws Exception {
        Path file = cnn(sequential().initial(7));
        Path changed = directory.resolve("changed.pt");
        var random = new SplittableRandom(6);
        int refused = 0;
        for (int i = 0; i < 60; i++) {
            repacked(file, changed, random);
            try {
                TorchScriptNetwork.load(changed, IMAGE, CLASSES);
            } catch (MalformedFileException e) {
                refused++;
                assertThat(e.getMessage()).startsWith(changed + ": ").doesNotContain("\n");
            }
        }
        assertThat(refused).isPositive();
    }

    /** A tensor that is said to be larger than what is stored of it would be read beyond its memory. */
    @Test
    void tensorsAreNotReadBeyondTheirMemory() throws Exception {
        Path changed = directory.resolve("changed.pt");
        byte[] shape = {'K', 10, 'K', 64}; // of dense1.weight, as a pickle has it
        repacked(cnn(sequential().initial(7)), changed, (name, bytes) -> {
            for (int i = 0; name.endsWith("/data.pkl") && i + shape.length <= bytes.length; i++) {
                if (Arrays.equals(shape, Arrays.copyOfRange(bytes, i, i + shape.length))) {
                    bytes[i + 1] = (byte) 255;
                }
            }
        });
        assertRefused(changed, "is damaged: 'dense1.weight' of the shape 255 x 64 has more elements than are stored");
    }

    /** Changes one byte of one part. */
    private static void repacked(Path from, Path to, SplittableRandom random) throws IOException {
        int victim;
        try (var in = new ZipFile(from.toFile())) {
            victim = random.nextInt(in.size());
        }
        var part = new AtomicInteger();
        repacked(from, to, (_, bytes) -> {
            if (part.getAndIncrement() == victim && bytes.length > 0) {
                bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
            }
        });
    }

    /** Copies an archive without compression, with its parts changed and their sums right. */
    private static void repacked(Path from, Path to, BiConsumer<String, byte[]> change) throws IOException {
        try (var in = new ZipFile(from.toFile());
                OutputStream stream = Files.newOutputStream(to);
                var out = new ZipOutputStream(stream)) {
            for (ZipEntry entry : Collections.list(in.entries())) {
                byte[] bytes = in.getInputStream(entry).readAllBytes();
                change.accept(entry.getName(), bytes);
                var crc = new CRC32();
                crc.update(bytes);
                var copy = new ZipEntry(entry.getName());
                copy.setMethod(ZipEntry.STORED);
                copy.setSize(bytes.length);
                copy.setCompressedSize(bytes.length);
                copy.setCrc(crc.getValue());
                out.putNextEntry(copy);
                out.write(bytes);
            }
        }
    }
}
