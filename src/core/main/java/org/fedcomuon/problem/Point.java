package org.fedcomuon.problem;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.UnaryOperator;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.format.Dtype;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.format.SafetensorsWriter;

/**
 * A model's parameters, or a gradient with respect to them: one flat vector that knows its blocks.
 *
 * <p>Not thread-safe, unless all threads only read.
 *
 * @param layout of the blocks
 * @param values of all blocks
 */
public record Point(Layout layout, Floats values) {
    public Point {
        if (values.length() != layout.length()) {
            throw new IllegalArgumentException(
                    "%d values for a layout of %d".formatted(values.length(), layout.length()));
        }
    }

    /** Returns the block called {@code name}, as a view; a matrix is row-major. */
    public Floats block(String name) {
        return block(layout.position(name));
    }

    /** Returns block number {@code position}, as a view; a matrix is row-major. */
    public Floats block(int position) {
        return values.slice(
                layout.offset(position), layout.blocks().get(position).size());
    }

    /**
     * Writes a safetensors file with one tensor per block, of the block's name and shape.
     *
     * @param metadata texts for the header of the file
     * @throws IOException when it cannot be written; the message names the file
     */
    public void save(Path file, Map<String, String> metadata) throws IOException {
        List<SafetensorsWriter.Tensor> tensors = layout.blocks().stream()
                .map(block -> new SafetensorsWriter.Tensor(block.name(), Dtype.F32, shape(block)))
                .toList();
        try (var writer = SafetensorsWriter.create(file, new LinkedHashMap<>(metadata), tensors)) {
            for (Block block : layout.blocks()) {
                writer.write(block.name(), 0, block(block.name()).segment());
            }
            writer.commit();
        }
    }

    /**
     * Reads a point from a safetensors file that has a tensor of the name and shape of each block.
     *
     * @throws MalformedFileException when it does not; the message names every block that it lacks
     * @throws IOException when it cannot be read
     */
    public static Point load(Path file, Layout layout) throws IOException {
        return load(file, layout, UnaryOperator.identity());
    }

    /**
     * Reads a point from a safetensors file with other names. Tensors that no block asks for are not read. Elements are
     * {@link Dtype#F32}, {@link Dtype#F16}, {@link Dtype#BF16} or {@link Dtype#F64}.
     *
     * @param tensor returns the name in the file of a block
     * @throws MalformedFileException when a tensor is missing or has another shape; the message names all of them
     * @throws IOException when it cannot be read
     */
    public static Point load(Path file, Layout layout, UnaryOperator<String> tensor) throws IOException {
        try (SafetensorsFile weights = SafetensorsFile.open(file)) {
            var mistakes = new ArrayList<String>();
            SequencedMap<String, SafetensorsFile.Tensor> there = weights.tensors();
            for (Block block : layout.blocks()) {
                String name = tensor.apply(block.name());
                SafetensorsFile.Tensor found = there.get(name);
                if (found == null) {
                    mistakes.add("no tensor '%s' for block '%s'".formatted(name, block.name()));
                } else if (!found.shape().equals(shape(block))) {
                    mistakes.add("tensor '%s' has the shape %s, but block '%s' is %s"
                            .formatted(name, found.shape(), block.name(), block.shape()));
                }
            }
            if (!mistakes.isEmpty()) {
                throw new MalformedFileException(
                        file,
                        "%s; it has the tensors %s"
                                .formatted(String.join("; ", mistakes), String.join(", ", there.keySet())));
            }
            var point = new Point(layout, Floats.zeros(layout.length()));
            for (Block block : layout.blocks()) {
                weights.readAsFloats(
                        tensor.apply(block.name()), point.block(block.name()).segment());
            }
            return point;
        }
    }

    private static List<Long> shape(Block block) {
        return block.shape().stream().map(Integer::longValue).toList();
    }
}
