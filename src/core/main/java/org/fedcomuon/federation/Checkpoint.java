package org.fedcomuon.federation;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.IntPredicate;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.format.Dtype;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.format.SafetensorsWriter;
import org.fedcomuon.method.ClientStore;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Variable;

/**
 * The complete state of a run, by client and not by device, so that it goes on anywhere: every state variable of the
 * method, how many samples each client has drawn, and who has been dropped from the round that is under way. What all
 * clients have in common is there once, what they differ in within a round for those of the round, and what they keep
 * for those that have ever taken part.
 */
final class Checkpoint {
    private static final String CLIENTS = "clients"; // that have ever taken part
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

    /**
     * Which rows of a file belong to whom: of state that clients differ in within a round, one for each client of the
     * round; of what clients keep, one for each that has ever taken part.
     */
    static final class Rows {
        private final int[] cohort;
        private final int[] known;

        /** @param cohort ascending; {@code known} too */
        Rows(int[] cohort, int[] known) {
            this.cohort = cohort.clone();
            this.known = known.clone();
        }

        int cohort() {
            return cohort.length;
        }

        int known() {
            return known.length;
        }

        int cohortRow(int client) {
            return row(cohort, client);
        }

        int knownRow(int client) {
            return row(known, client);
        }

        private static int row(int[] clients, int client) {
            int row = Arrays.binarySearch(clients, client);
            if (row < 0) {
                throw new IllegalStateException("client %d has no row".formatted(client));
            }
            return row;
        }
    }

    /** Starts a checkpoint, on one device for all. */
    static CheckpointStore.Pending begin(
            CheckpointStore store, Setup setup, Counters counters, Clients clients, Rows rows) {
        var metadata = new LinkedHashMap<>(setup.identity());
        metadata.putIfAbsent("iterations", Long.toString(setup.iterations()));
        metadata.putAll(counters.toMetadata());
        CheckpointStore.Pending pending = store.begin(counters.step(), metadata, tensors(clients, rows, true));
        writeKnown(pending::write, rows);
        return pending;
    }

    /**
     * Returns the tensors of the clients' state.
     *
     * @param whole whether also those of what all clients have in common
     */
    static List<SafetensorsWriter.Tensor> tensors(Clients clients, Rows rows, boolean whole) {
        var tensors = new ArrayList<SafetensorsWriter.Tensor>();
        for (Variable variable : clients.state()) {
            if (whole || !variable.isCommon() || isPrivate(clients, variable)) {
                tensors.add(spec(variable, rowsOf(clients, variable, rows)));
            }
        }
        tensors.add(SafetensorsWriter.Tensor.of(CLIENTS, Dtype.I64, rows.known()));
        tensors.add(SafetensorsWriter.Tensor.of(DRAWS, Dtype.I64, rows.known(), 2));
        tensors.add(SafetensorsWriter.Tensor.of(DROPPED, Dtype.U8, rows.cohort()));
        return tensors;
    }

    private static boolean isPrivate(Clients clients, Variable variable) {
        return clients.privateState().contains(variable);
    }

    private static int rowsOf(Clients clients, Variable variable, Rows rows) {
        return isPrivate(clients, variable) ? rows.known() : variable.isCommon() ? 1 : rows.cohort();
    }

    private static SafetensorsWriter.Tensor spec(Variable variable, int rows) {
        return variable.isShared()
                ? SafetensorsWriter.Tensor.of(variable.name(), Dtype.F32, variable.length())
                : SafetensorsWriter.Tensor.of(variable.name(), Dtype.F32, rows, variable.length());
    }

    /** The destination of a tensor's bytes. */
    interface Sink {
        void write(String name, long offsetBytes, MemorySegment from);
    }

    /** Returns the names of the tensors that have a row for each client that has ever taken part. */
    static Set<String> kept(Clients clients) {
        var names = new HashSet<>(Set.of(DRAWS));
        clients.privateState().forEach(variable -> names.add(variable.name()));
        return names;
    }

    /** Returns whether a tensor says which clients there are. */
    static boolean isList(String name) {
        return name.equals(CLIENTS);
    }

    static void writeKnown(Sink sink, Rows rows) {
        long[] numbers = Arrays.stream(rows.known).asLongStream().toArray();
        sink.write(CLIENTS, 0, MemorySegment.ofArray(numbers));
    }

    /**
     * Writes what one device holds.
     *
     * @param kept where clients that sit out have their private state; empty if none does
     * @param leads whether this is the device that writes what is there once, because all have it in common
     */
    static void write(Sink sink, Clients clients, Optional<ClientStore> kept, Rows rows, boolean leads) {
        for (Variable variable : clients.state()) {
            boolean own = isPrivate(clients, variable);
            if (variable.isCommon() && !own) {
                if (leads) {
                    write(sink, variable, 0, 0);
                }
            } else if (!own || kept.isEmpty()) { // otherwise it has been saved
                for (int k = 0; k < clients.count(); k++) {
                    int client = clients.number(k);
                    write(sink, variable, k, own ? rows.knownRow(client) : rows.cohortRow(client));
                }
            }
        }
        for (int k = 0; k < clients.count(); k++) {
            int client = clients.number(k);
            if (kept.isEmpty()) {
                var draws = new long[] {clients.innerDraws()[k], clients.outerDraws()[k]};
                sink.write(DRAWS, 2L * Long.BYTES * rows.knownRow(client), MemorySegment.ofArray(draws));
            }
            var dropped = new byte[] {(byte) (clients.takesPart(k) ? 0 : 1)};
            sink.write(DROPPED, rows.cohortRow(client), MemorySegment.ofArray(dropped));
        }
    }

    /** Writes what clients have kept, on one device for all of a process. */
    static void writeKept(Sink sink, Clients clients, ClientStore kept, Rows rows) {
        for (int client : kept.clients()) {
            long row = rows.knownRow(client);
            sink.write(DRAWS, 2L * Long.BYTES * row, kept.draws(client));
            long at = 0;
            for (Variable variable : clients.privateState()) {
                long length = variable.length();
                sink.write(variable.name(), row * length * Float.BYTES, kept.values(client, at, length));
                at += length;
            }
        }
    }

    private static void write(Sink sink, Variable variable, int client, long row) {
        Buffer buffer = variable.buffer();
        forPieces(variable, client, row, (offset, piece, at) -> {
            if (!buffer.device().isHost()) {
                buffer.copyOut(offset, piece);
            }
            sink.write(variable.name(), at, piece);
        });
    }

    /** Processes a piece of a variable, which starts at an element of the variable and at a byte of the file. */
    private interface Piece<E extends Exception> {
        void accept(long offset, MemorySegment piece, long at) throws E;
    }

    /**
     * Processes the values of client {@code k} of a device, which belong to a row of the file. On the host the pieces
     * are the memory itself; values of a GPU pass through host memory a piece at a time: a state may be larger than
     * what is free here.
     */
    private static <E extends Exception> void forPieces(Variable variable, int k, long row, Piece<E> body) throws E {
        long length = variable.length();
        try (Arena arena = Arena.ofConfined()) {
            boolean host = variable.buffer().device().isHost();
            MemorySegment scratch = host
                    ? variable.buffer().segment()
                    : arena.allocate(Math.min(length, PIECE) * Float.BYTES, Float.BYTES);
            for (long done = 0; done < length; done += PIECE) {
                long bytes = Math.min(PIECE, length - done) * Float.BYTES;
                long offset = k * length + done;
                body.accept(
                        offset,
                        scratch.asSlice(host ? offset * Float.BYTES : 0, bytes),
                        (row * length + done) * Float.BYTES);
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
        if (file.metadata().containsKey("method") && !file.metadata().containsKey(Setup.MEANS)) {
            throw new CheckpointException(
                    ("%s is from a version whose means were sums in client order; they are exact now, so the run would not go"
                                    + " on with bit-identical results. Begin it anew, or resume it with that version")
                            .formatted(file.path()));
        }
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

    /** Returns the clients that have ever taken part, ascending. */
    static int[] known(SafetensorsFile file, int clients) {
        SafetensorsFile.Tensor tensor = file.tensors().get(CLIENTS);
        if (tensor == null || tensor.dtype() != Dtype.I64 || tensor.shape().size() != 1) {
            throw new CheckpointException("%s is foreign: it does not say which clients it has".formatted(file.path()));
        }
        var numbers = new long[Math.toIntExact(tensor.shape().getFirst())];
        try {
            file.read(CLIENTS, 0, MemorySegment.ofArray(numbers));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        for (int i = 0; i < numbers.length; i++) {
            if (numbers[i] < 0 || numbers[i] >= clients || (i > 0 && numbers[i] <= numbers[i - 1])) {
                throw new CheckpointException(
                        "%s is foreign: clients %d of %d".formatted(file.path(), numbers[i], clients));
            }
        }
        return Arrays.stream(numbers).mapToInt(Math::toIntExact).toArray();
    }

    /**
     * Reads what clients have kept, on one device for all of a process.
     *
     * @param here which clients may be on a device of this process
     */
    static void readKept(SafetensorsFile file, Clients clients, Rows rows, ClientStore kept, IntPredicate here) {
        try {
            for (Variable variable : clients.privateState()) {
                require(file, spec(variable, rows.known()));
            }
            require(file, SafetensorsWriter.Tensor.of(DRAWS, Dtype.I64, rows.known(), 2));
            for (int row = 0; row < rows.known(); row++) {
                int client = rows.known[row];
                if (here.test(client)) {
                    file.read(DRAWS, 2L * Long.BYTES * row, kept.draws(client));
                    long at = 0;
                    for (Variable variable : clients.privateState()) {
                        long length = variable.length();
                        file.read(variable.name(), row * length * Float.BYTES, kept.values(client, at, length));
                        at += length;
                    }
                    kept.put(client);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Reads what one device holds; what clients have kept is there if {@code kept} has it. Sets who takes part. */
    static void read(SafetensorsFile file, Clients clients, Optional<ClientStore> kept, Rows rows) {
        try {
            if (kept.isPresent()) {
                clients.load(kept.get());
            } else {
                require(file, SafetensorsWriter.Tensor.of(DRAWS, Dtype.I64, rows.known(), 2));
            }
            for (Variable variable : clients.state()) {
                boolean own = isPrivate(clients, variable);
                if (own && kept.isPresent()) {
                    continue;
                }
                SafetensorsFile.Tensor found = file.tensors().get(variable.name());
                boolean common = !own && found != null && found.shape().getFirst() == 1;
                require(file, spec(variable, own ? rows.known() : common ? 1 : rows.cohort()));
                if (variable.isShared()) {
                    read(file, variable, 0, 0);
                } else if (common) {
                    read(file, variable, 0, 0);
                    variable.becomeCommon();
                    variable.respread();
                } else {
                    for (int k = 0; k < clients.count(); k++) {
                        int client = clients.number(k);
                        read(file, variable, k, own ? rows.knownRow(client) : rows.cohortRow(client));
                    }
                }
            }
            require(file, SafetensorsWriter.Tensor.of(DROPPED, Dtype.U8, rows.cohort()));
            var takesPart = new boolean[clients.count()];
            var draws = new long[2];
            var dropped = new byte[1];
            for (int k = 0; k < clients.count(); k++) {
                int client = clients.number(k);
                if (kept.isEmpty()) {
                    file.read(DRAWS, 2L * Long.BYTES * rows.knownRow(client), MemorySegment.ofArray(draws));
                    clients.innerDraws()[k] = draws[0];
                    clients.outerDraws()[k] = draws[1];
                }
                file.read(DROPPED, rows.cohortRow(client), MemorySegment.ofArray(dropped));
                takesPart[k] = dropped[0] == 0;
            }
            clients.admit(takesPart);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void read(SafetensorsFile file, Variable variable, int client, long row) throws IOException {
        Buffer buffer = variable.buffer();
        Piece<IOException> read = (offset, piece, at) -> {
            file.read(variable.name(), at, piece);
            if (!buffer.device().isHost()) {
                buffer.copyIn(offset, piece);
            }
        };
        forPieces(variable, client, row, read);
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
