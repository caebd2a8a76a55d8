package org.fedcomuon.federation;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.fedcomuon.format.Dtype;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.format.SafetensorsWriter;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.DivergedException;
import org.fedcomuon.problem.testbed.RateTestbed;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whatever a checkpoint holds, damaged or made up: a run goes on from it, or says what is wrong with it. */
class CheckpointMutationsIT {
    private static final long SEED = Long.getLong("tests.seed", 17_11_2026L);
    private static final int MUTATIONS = Soak.mutations(500);
    private static final long STEPS = 6;
    private static final List<String> VALUES = List.of(
            "", "0", "-1", "3", "6", "7", "9223372036854775807", "9223372036854775808", "1e3", "x", "null", "\n");

    @TempDir
    private Path directory;

    private Path original = Path.of("");

    @BeforeEach
    void train() throws InterruptedException {
        original = run(testbed().checkpoints(directory.resolve("original"), 1))
                .checkpoint()
                .orElseThrow();
    }

    private static Federation.Builder testbed() {
        return Federation.of(new RateTestbed(3, 1), AllMethods.fedCoMuonVr())
                .threads(1)
                .workers(1)
                .iterations(STEPS)
                .tau(2);
    }

    private static Result run(Federation.Builder builder) throws InterruptedException {
        return builder.build().run();
    }

    @Test
    @Tag(Soak.TAG)
    void damagedBytesAreRefused() throws Exception {
        var random = new Random(SEED);
        byte[] whole = Files.readAllBytes(original);
        Path file = directory.resolve(original.getFileName());
        try (var mutations = mutations("checkpoints, damaged")) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] bytes = whole.clone();
                switch (random.nextInt(3)) {
                    case 0 -> bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length));
                    case 1 -> bytes = Arrays.copyOf(bytes, bytes.length + 1 + random.nextInt(100));
                    default -> bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
                }
                Files.write(file, bytes);
                mutations.feed(bytes, "", () -> goOn(file));
            }
            mutations.end(0, 0);
        }
    }

    private static Mutations mutations(String reader) {
        return new Mutations(reader, SEED, CheckpointException.class).ofAllThreads();
    }

    @Test
    @Tag(Soak.TAG)
    void whatIsMadeUpIsReadOrRefused() throws Exception {
        var random = new Random(SEED);
        Path file = directory.resolve(original.getFileName());
        try (var mutations = mutations("checkpoints, made up")) {
            for (int i = 0; i < MUTATIONS; i++) {
                rewrite(file, random);
                mutations.feed(Files.readAllBytes(file), "", () -> goOn(file));
            }
            mutations.end(0.01, 0.75);
        }
    }

    private static Optional<Result> goOn(Path file) throws InterruptedException {
        try {
            return Optional.of(run(testbed().resume(file)));
        } catch (Federation.NoClientsException | DivergedException | ClientFaultException e) {
            return Optional.empty(); // nobody takes part, or W is what it cannot be: that shows in the first step
        }
    }

    /** The original with something changed, and whole: its checksum is right. */
    private void rewrite(Path target, Random random) throws IOException {
        try (SafetensorsFile from = SafetensorsFile.open(original);
                Arena arena = Arena.ofConfined()) {
            Map<String, String> metadata = new LinkedHashMap<>(from.metadata());
            metadata.remove("sha256");
            List<String> keys = List.copyOf(metadata.keySet());
            String key = keys.get(random.nextInt(keys.size()));
            List<String> names = List.copyOf(from.tensors().keySet());
            String changed = names.get(random.nextInt(names.size()));
            int change = random.nextInt(6);
            switch (change) {
                case 0 -> metadata.remove(key);
                case 1 -> metadata.put(key, VALUES.get(random.nextInt(VALUES.size())));
                case 2 -> metadata.put("method.another", "1");
                default -> {} // of a tensor
            }
            var specs = new ArrayList<SafetensorsWriter.Tensor>();
            Map<String, MemorySegment> data = new LinkedHashMap<>();
            for (Map.Entry<String, SafetensorsFile.Tensor> tensor :
                    from.tensors().entrySet()) {
                SafetensorsFile.Tensor info = tensor.getValue();
                MemorySegment bytes =
                        arena.allocate(Math.max(1, info.bytes()), Long.BYTES).asSlice(0, info.bytes());
                from.read(tensor.getKey(), 0, bytes);
                boolean mine = tensor.getKey().equals(changed);
                String name = mine && change == 3 ? changed + "'" : tensor.getKey();
                if (mine && change == 4) {
                    specs.add(SafetensorsWriter.Tensor.of(name, Dtype.U8, info.bytes()));
                } else {
                    specs.add(new SafetensorsWriter.Tensor(name, info.dtype(), info.shape()));
                }
                if (mine && change == 5) {
                    for (long at = 0; at < bytes.byteSize(); at++) {
                        bytes.set(ValueLayout.JAVA_BYTE, at, (byte) random.nextInt(256));
                    }
                }
                data.put(name, bytes);
            }
            try (var writer = SafetensorsWriter.create(target, metadata, specs)) {
                for (Map.Entry<String, MemorySegment> tensor : data.entrySet()) {
                    writer.write(tensor.getKey(), 0, tensor.getValue());
                }
                writer.commit();
            }
        }
    }
}
