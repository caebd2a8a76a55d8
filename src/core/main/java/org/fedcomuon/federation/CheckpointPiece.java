package org.fedcomuon.federation;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.format.SafetensorsWriter;
import org.fedcomuon.method.ClientStore;
import org.fedcomuon.method.Clients;

/**
 * The contribution of one member of a cluster to a checkpoint: a file beside the checkpoints with the state of its
 * clients, which is complete whenever it exists. The leading member combines the pieces, so the state of a client
 * reaches the checkpoint without a message, and a member that has to write its piece again writes the same one.
 */
final class CheckpointPiece {
    private static final Pattern NAME = Pattern.compile("checkpoint-([0-9]{10,18})\\.member-[0-9]+");
    private static final long PIECE_BYTES = 1 << 24;

    private CheckpointPiece() {}

    private static Path file(CheckpointStore store, long step, int member) {
        return store.directory().resolve("checkpoint-%010d.member-%d".formatted(step, member));
    }

    /** Writes that of one member. */
    static void write(CheckpointStore store, long step, int member, Clients clients, Optional<ClientStore> kept) {
        Path file = file(store, step, member);
        int[] here = IntStream.range(0, clients.count()).map(clients::number).toArray();
        var rows = new Checkpoint.Rows(here, kept.map(ClientStore::clients).orElse(here));
        try {
            Files.createDirectories(store.directory());
            try (var writer = SafetensorsWriter.create(file, Map.of(), Checkpoint.tensors(clients, rows, false))) {
                Checkpoint.Sink sink = (name, offset, from) -> {
                    try {
                        writer.write(name, offset, from);
                    } catch (IOException e) {
                        throw unwritten(file, e);
                    }
                };
                Checkpoint.writeKnown(sink, rows);
                Checkpoint.write(sink, clients, kept, rows, false);
                kept.ifPresent(own -> Checkpoint.writeKept(sink, clients, own, rows));
                writer.commit();
            }
        } catch (IOException e) {
            throw unwritten(file, e);
        }
    }

    /** Returns the clients of a member that have ever taken part, ascending. */
    static int[] known(CheckpointStore store, long step, int member, int clients) {
        try (SafetensorsFile file = SafetensorsFile.open(file(store, step, member))) {
            return Checkpoint.known(file, clients);
        } catch (IOException e) {
            throw unread(file(store, step, member), member, e);
        }
    }

    private static CheckpointException unread(Path path, int member, IOException e) {
        return new CheckpointException(
                "member %d has left no piece that can be read; do all members see the same directory? %s: %s"
                        .formatted(member, path, e.getMessage()),
                e);
    }

    private static CheckpointException unwritten(Path file, IOException e) {
        return new CheckpointException("no checkpoint can be written: %s: %s".formatted(file, e.getMessage()), e);
    }

    /**
     * Copies a member's piece to where it belongs.
     *
     * @param here the clients of the round that the member has, ascending
     * @param rows of the checkpoint
     */
    static void copy(
            CheckpointStore store,
            long step,
            int member,
            List<Integer> here,
            Clients clients,
            Checkpoint.Rows rows,
            CheckpointStore.Pending pending) {
        Path path = file(store, step, member);
        try (SafetensorsFile file = SafetensorsFile.open(path);
                Arena arena = Arena.ofConfined()) {
            file.verify();
            int[] known = Checkpoint.known(file, clients.total());
            Set<String> keptNames = Checkpoint.kept(clients);
            for (Map.Entry<String, SafetensorsFile.Tensor> tensor :
                    file.tensors().entrySet()) {
                String name = tensor.getKey();
                if (Checkpoint.isList(name)) {
                    continue;
                }
                boolean kept = keptNames.contains(name);
                int count = kept ? known.length : here.size();
                long row = count == 0 ? 0 : tensor.getValue().bytes() / count;
                MemorySegment scratch = arena.allocate(Math.min(row, PIECE_BYTES), Long.BYTES);
                for (int k = 0; k < count; k++) {
                    long to = kept ? rows.knownRow(known[k]) : rows.cohortRow(here.get(k));
                    for (long at = 0; at < row; at += PIECE_BYTES) {
                        MemorySegment piece = scratch.asSlice(0, Math.min(PIECE_BYTES, row - at));
                        file.read(name, k * row + at, piece);
                        pending.write(name, to * row + at, piece);
                    }
                }
            }
        } catch (IOException e) {
            throw unread(path, member, e);
        }
    }

    /**
     * Returns whether they have been put together and deleted: then there is the checkpoint, and a piece is missing.
     */
    static boolean areDone(CheckpointStore store, long step, int members) {
        for (int member = 1; member < members; member++) {
            if (!Files.exists(file(store, step, member))) {
                return Files.exists(store.file(step));
            }
        }
        return false;
    }

    /**
     * Deletes those of a checkpoint that is whole, and earlier ones that a run which was killed has left, finished or
     * not. Others may write the next already; and one that is started again, those since the checkpoint before.
     */
    static void deleteUpTo(CheckpointStore store, long step) {
        long before = store.all().stream()
                .mapToLong(CheckpointStore::step)
                .filter(earlier -> earlier < step)
                .max()
                .orElse(-1);
        try (DirectoryStream<Path> files = Files.newDirectoryStream(store.directory())) {
            for (Path file : files) {
                Matcher name = NAME.matcher(String.valueOf(file.getFileName()));
                if (name.matches() && Long.parseLong(name.group(1)) <= step) {
                    Files.deleteIfExists(file);
                }
            }
            SafetensorsWriter.deleteAbandoned(store.directory(), text -> {
                Matcher name = NAME.matcher(text);
                return name.matches() && Long.parseLong(name.group(1)) <= before;
            });
        } catch (IOException e) {
            throw new CheckpointException("pieces in %s cannot be deleted: %s".formatted(store.directory(), e), e);
        }
    }
}
