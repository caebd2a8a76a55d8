package org.fedcomuon.experiment;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import org.fedcomuon.federation.CheckpointException;
import org.fedcomuon.federation.CheckpointStore;
import org.fedcomuon.federation.RunFiles;
import org.fedcomuon.format.Dtype;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/**
 * The momentum that the Muon methods orthogonalize, from the newest checkpoint of a run.
 *
 * <p>Immutable.
 *
 * @param run the directory of the run
 * @param step that the checkpoint was written after
 * @param matrices the blocks that are orthogonalized, of each client; one of each where all clients have the same,
 *     which is so at the end of a round for most methods
 */
record RunMomentum(Path run, long step, List<Momentum> matrices) {
    private static final String MOMENTUM = "M";
    private static final String CLIENTS = "clients";
    private static final String LAYOUT = "layout";

    RunMomentum {
        matrices = List.copyOf(matrices);
    }

    /**
     * A block of one client.
     *
     * @param name of the block, and of the client if it is its own
     * @param values row-major
     */
    @SuppressWarnings("ArrayRecordComponent") // they are never compared
    record Momentum(String name, int rows, int cols, float[] values) {}

    /**
     * Reads the newest checkpoint.
     *
     * @param run the directory of a run, finished or not
     * @param client the one client to read; empty for all
     * @throws RunRecordException when there is no such run, checkpoint, momentum or client
     */
    static RunMomentum read(Path run, OptionalInt client) {
        if (!Files.isDirectory(run)) {
            throw new RunRecordException(run, "no such directory; name a directory that 'train' wrote");
        }
        var store = new CheckpointStore(new RunFiles(run).checkpoints());
        if (store.newest().isEmpty()) {
            throw new RunRecordException(
                    run, "holds no checkpoint; 'train' leaves them in its directory of checkpoints");
        }
        try (SafetensorsFile file = store.openNewest()) {
            return new RunMomentum(run, CheckpointStore.step(file.path()), matrices(file, client));
        } catch (CheckpointException | IOException e) {
            throw new RunRecordException(run, String.valueOf(e.getMessage()), e);
        }
    }

    private static List<Momentum> matrices(SafetensorsFile file, OptionalInt client) throws IOException {
        Layout layout = layout(file);
        SafetensorsFile.Tensor tensor = file.tensors().get(MOMENTUM);
        if (tensor == null) {
            throw new RunRecordException(
                    file.path(),
                    "the method %s keeps no momentum M; a Muon method does, such as fedcomuon"
                            .formatted(file.metadata().getOrDefault("method", "of this checkpoint")));
        }
        List<Long> shape = tensor.shape();
        if (tensor.dtype() != Dtype.F32 || shape.size() != 2 || shape.getLast() != layout.length()) {
            throw new RunRecordException(
                    file.path(),
                    "its momentum M of shape %s is not of a model with %d weights".formatted(shape, layout.length()));
        }
        int rows = Math.toIntExact(shape.getFirst());
        List<String> owners = owners(file, rows);
        var matrices = new ArrayList<Momentum>();
        for (int row = 0; row < rows; row++) {
            String owner = owners.get(row);
            if (rows > 1 && client.isPresent() && !owner.equals(Integer.toString(client.getAsInt()))) {
                continue;
            }
            for (int i = 0; i < layout.blocks().size(); i++) {
                Block block = layout.blocks().get(i);
                if (block.update() == Block.Update.ORTHOGONAL) {
                    String name = rows == 1 ? block.name() : "%s of client %s".formatted(block.name(), owner);
                    matrices.add(momentum(file, name, block, row * layout.length() + layout.offset(i)));
                }
            }
        }
        if (matrices.isEmpty()) {
            throw new RunRecordException(
                    file.path(),
                    client.isPresent() && rows > 1
                            ? "has no client %d; its clients are %s"
                                    .formatted(client.getAsInt(), String.join(", ", owners))
                            : "its model has no matrix that is orthogonalized");
        }
        return matrices;
    }

    /** Returns the layout of the model of a checkpoint. */
    static Layout layout(SafetensorsFile file) {
        try {
            return Layout.parse(file.metadata().getOrDefault(LAYOUT, ""));
        } catch (IllegalArgumentException e) {
            throw new RunRecordException(file.path(), "does not say which blocks its model has: " + e.getMessage(), e);
        }
    }

    /** Returns whose each row is: clients by number, or by their places in the round where it is not over. */
    private static List<String> owners(SafetensorsFile file, int rows) throws IOException {
        long[] known = file.longs(CLIENTS);
        var owners = new ArrayList<String>();
        for (int row = 0; row < rows; row++) {
            owners.add(Long.toString(known.length == rows ? known[row] : row));
        }
        return owners;
    }

    private static Momentum momentum(SafetensorsFile file, String name, Block block, long offset) throws IOException {
        var shape = new Compare.Shape(block.rows(), block.cols());
        var values = new float[shape.rows() * shape.cols()];
        file.read(MOMENTUM, offset * Float.BYTES, MemorySegment.ofArray(values));
        return new Momentum(name, shape.rows(), shape.cols(), values);
    }
}
