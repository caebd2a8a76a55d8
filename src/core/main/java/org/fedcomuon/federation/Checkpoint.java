package org.fedcomuon.federation;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.IntUnaryOperator;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.format.Dtype;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.format.SafetensorsWriter;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Variable;

/**
 * The complete state of a run, by client and not by device, so that it goes on anywhere: every state variable of the
 * method, how many samples each client has drawn, and who has been dropped from the round that is under way.
 */
final class Checkpoint {
    private static final String DRAWS = "draws";
    private static final String DROPPED = "dropped";
    private static final long PIECE = 1 << 22; // elements

    private Checkpoint() {}

    /** The counters that go with the tensors. */
    record Counters(long step, long communicatedBytes, long roundTrips, long faults) {
        private static final String STEP = "step";
        private static final String BYTES = "communicatedBytes";
        private static final String TRIPS = "roundTrips";
        private static final String FAULTS = "faults";

        Map<String, String> toMetadata() {
            var all = new LinkedHashMap<String, String>();
            all.put(STEP, Long.toString(step));
            all.put(BYTES, Long.toString(communicatedBytes));
            all.put(TRIPS, Long.toString(roundTrips));
            all.put(FAULTS, Long.toString(faults));
            return all;
        }

        static Counters of(SafetensorsFile file) {
            return new Counters(number(file, STEP), number(file, BYTES), number(file, TRIPS), number(file, FAULTS));
        }

        private static long number(SafetensorsFile file, String key) {
            String text = file.metadata().get(key);
            try {
                long value = Long.parseLong(String.valueOf(text));
                if (value >= 0) {
                    return value;
                }
            } catch (NumberFormatException e) {
                // thrown below
            }
            throw new CheckpointException("%s is foreign: its %s is %s".formatted(file.path(), key, text));
        }
    }

    /** Starts a checkpoint, on one device for all. */
    static CheckpointStore.Pending begin(CheckpointStore store, Setup setup, Counters counters, Clients clients) {
        var metadata = new LinkedHashMap<>(setup.identity());
        metadata.putIfAbsent("iterations", Long.toString(setup.iterations()));
        metadata.putAll(counters.toMetadata());
        return store.begin(
                counters.step(), metadata, tensors(clients, setup.problem().clients(), true));
    }

    /** Returns the tensors of the clients' state. */
    static List<SafetensorsWriter.Tensor> tensors(Clients clients, int count, boolean shared) {
        var tensors = new ArrayList<SafetensorsWriter.Tensor>();
        for (Variable variable : clients.state()) {
            if (!variable.isShared() || shared) {
                tensors.add(spec(variable, count));
            }
        }
        tensors.add(SafetensorsWriter.Tensor.of(DRAWS, Dtype.I64, count, 2));
        tensors.add(SafetensorsWriter.Tensor.of(DROPPED, Dtype.U8, count));
        return tensors;
    }

    private static SafetensorsWriter.Tensor spec(Variable variable, int clients) {
        return variable.isShared()
                ? SafetensorsWriter.Tensor.of(variable.name(), Dtype.F32, variable.length())
                : SafetensorsWriter.Tensor.of(variable.name(), Dtype.F32, clients, variable.length());
    }

    /** The destination of a tensor's bytes. */
    interface Sink {
        void write(String name, long offsetBytes, MemorySegment from);
    }

    /**
     * Writes what one device holds.
     *
     * @param row of the file that a client here has
     * @param shared whether what all clients share is written too: once is enough
     */
    static void write(Sink sink, Clients clients, boolean[] admitted, IntUnaryOperator row, boolean shared) {
        for (Variable variable : clients.state()) {
            if (!variable.isShared() || shared) {
                Buffer buffer = variable.buffer();
                forPieces(variable, clients, row, (offset, piece, at) -> {
                    if (!buffer.device().isHost()) {
                        buffer.copyOut(offset, piece);
                    }
                    sink.write(variable.name(), at, piece);
                });
            }
        }
        for (int k = 0; k < clients.count(); k++) {
            var draws = new long[] {clients.innerDraws()[k], clients.outerDraws()[k]};
            var dropped = new byte[] {(byte) (admitted[k] && !clients.takesPart(k) ? 1 : 0)};
            sink.write(DRAWS, 2L * Long.BYTES * row.applyAsInt(k), MemorySegment.ofArray(draws));
            sink.write(DROPPED, row.applyAsInt(k), MemorySegment.ofArray(dropped));
        }
    }

    /** Processes a piece of a variable, which starts at an element of the variable and at a byte of the file. */
    private interface Piece<E extends Exception> {
        void accept(long offset, MemorySegment piece, long at) throws E;
    }

    /**
     * Returns every client's values, where they belong in the file. On the host the pieces are the memory itself;
     * values of a GPU pass through host memory a piece at a time: a state may be larger than what is free here.
     */
    private static <E extends Exception> void forPieces(
            Variable variable, Clients clients, IntUnaryOperator rows, Piece<E> body) throws E {
        long length = variable.length();
        try (Arena arena = Arena.ofConfined()) {
            boolean host = variable.buffer().device().isHost();
            MemorySegment scratch = host
                    ? variable.buffer().segment()
                    : arena.allocate(Math.min(length, PIECE) * Float.BYTES, Float.BYTES);
            for (int k = 0; k < (variable.isShared() ? 1 : clients.count()); k++) {
                long row = variable.isShared() ? 0 : rows.applyAsInt(k) * length;
                for (long done = 0; done < length; done += PIECE) {
                    long bytes = Math.min(PIECE, length - done) * Float.BYTES;
                    long offset = k * length + done;
                    body.accept(
                            offset,
                            scratch.asSlice(host ? offset * Float.BYTES : 0, bytes),
                            (row + done) * Float.BYTES);
                }
            }
        }
    }

    /**
     * Opens the checkpoint that a run is to go on from: the newest of a directory, or the one named.
     *
     * @throws CheckpointException when it is damaged, or of another run
     */
    static SafetensorsFile open(Path path, Setup setup) {
        SafetensorsFile file;
        if (Files.isDirectory(path)) {
            file = new CheckpointStore(path).openNewest();
        } else {
            Path directory = Objects.requireNonNullElse(path.toAbsolutePath().getParent(), path);
            file = new CheckpointStore(directory).open(path);
        }
        try {
            requireSame(file, setup);
        } catch (RuntimeException e) {
            close(file);
            throw e;
        }
        return file;
    }

    private static void requireSame(SafetensorsFile file, Setup setup) {
        setup.identity().forEach((key, mine) -> {
            String its = file.metadata().get(key);
            if (!mine.equals(its)) {
                throw new CheckpointException(
                        its == null
                                ? "%s is of another run: it does not say its %s, which is %s here"
                                        .formatted(file.path(), key, mine)
                                : "%s is of another run: its %s is %s, not %s".formatted(file.path(), key, its, mine));
            }
        });
        file.metadata().keySet().stream()
                .filter(key -> (key.startsWith("method.") || key.startsWith("config."))
                        && !setup.identity().containsKey(key))
                .findFirst()
                .ifPresent(key -> {
                    throw new CheckpointException("%s is of another run: it has a %s, %s, which is not set here"
                            .formatted(file.path(), key, file.metadata().get(key)));
                });
        long step = Counters.of(file).step();
        if (step > setup.iterations()) {
            throw new CheckpointException(
                    "%s is at step %d, beyond the %d of this run".formatted(file.path(), step, setup.iterations()));
        }
    }

    /** Reads what one device holds; afterwards, who takes part in the round that is under way. */
    static boolean[] read(SafetensorsFile file, Clients clients, int allClients, boolean[] admitted) {
        try {
            for (Variable variable : clients.state()) {
                require(file, spec(variable, allClients));
                Buffer buffer = variable.buffer();
                Piece<IOException> read = (offset, piece, at) -> {
                    file.read(variable.name(), at, piece);
                    if (!buffer.device().isHost()) {
                        buffer.copyIn(offset, piece);
                    }
                };
                forPieces(variable, clients, clients::number, read);
            }
            require(file, SafetensorsWriter.Tensor.of(DRAWS, Dtype.I64, allClients, 2));
            require(file, SafetensorsWriter.Tensor.of(DROPPED, Dtype.U8, allClients));
            boolean[] takesPart = admitted.clone();
            var draws = new long[2];
            var dropped = new byte[1];
            for (int k = 0; k < clients.count(); k++) {
                file.read(DRAWS, 2L * Long.BYTES * clients.number(k), MemorySegment.ofArray(draws));
                file.read(DROPPED, clients.number(k), MemorySegment.ofArray(dropped));
                clients.innerDraws()[k] = draws[0];
                clients.outerDraws()[k] = draws[1];
                takesPart[k] &= dropped[0] == 0;
            }
            return takesPart;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void require(SafetensorsFile file, SafetensorsWriter.Tensor wanted) {
        SafetensorsFile.Tensor found = file.tensors().get(wanted.name());
        if (found == null || found.dtype() != wanted.dtype() || !found.shape().equals(wanted.shape())) {
            throw new CheckpointException("%s is foreign: it has %s where %s %s %s is needed"
                    .formatted(
                            file.path(),
                            found == null ? "nothing" : found.dtype() + " " + found.shape(),
                            wanted.name(),
                            wanted.dtype(),
                            wanted.shape()));
        }
    }

    static void close(SafetensorsFile file) {
        try {
            file.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
