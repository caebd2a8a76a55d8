package org.fedcomuon.problem;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The positions of a model's blocks in its flat vector: one after the other, without gaps, in the given order.
 * Immutable.
 */
public final class Layout {
    /** A block of {@link #text}. */
    private static final Pattern BLOCK = Pattern.compile("(.+?) \\[([0-9]{1,10}(?:, [0-9]{1,10})*)] ([A-Z]+);(?: |$)");

    private final List<Block> blocks;
    private final long[] offsets;
    private final Map<String, Integer> positions = new HashMap<>();

    private Layout(List<Block> blocks) {
        this.blocks = List.copyOf(blocks);
        offsets = new long[blocks.size() + 1];
        for (int i = 0; i < blocks.size(); i++) {
            Block block = blocks.get(i);
            if (positions.put(block.name(), i) != null) {
                throw new IllegalArgumentException("two blocks are called '%s'".formatted(block.name()));
            }
            offsets[i + 1] = Math.addExact(offsets[i], block.size());
        }
        if (blocks.isEmpty()) {
            throw new IllegalArgumentException("a model needs a block");
        }
    }

    /** Creates the layout of these blocks; names must be distinct. */
    public static Layout of(Block... blocks) {
        return new Layout(List.of(blocks));
    }

    /** Creates the layout of these blocks; names must be distinct. */
    public static Layout of(List<Block> blocks) {
        return new Layout(blocks);
    }

    /** Creates the layout of the blocks of several layers, one after the other; names must be distinct. */
    @SafeVarargs
    @SuppressWarnings("varargs")
    public static Layout of(List<Block>... layers) {
        return new Layout(Arrays.stream(layers).flatMap(List::stream).toList());
    }

    /**
     * Reads what {@link #text} has written.
     *
     * @throws IllegalArgumentException when it is not the text of a layout
     */
    public static Layout parse(String text) {
        var blocks = new ArrayList<Block>();
        Matcher matcher = BLOCK.matcher(text);
        int at = 0;
        while (matcher.find() && matcher.start() == at) {
            List<Integer> shape = Stream.of(matcher.group(2).split(", "))
                    .map(Integer::valueOf)
                    .toList();
            blocks.add(new Block(matcher.group(1), shape, Block.Update.valueOf(matcher.group(3))));
            at = matcher.end();
        }
        if (at < text.length()) {
            throw new IllegalArgumentException("'%s' is not a list of blocks".formatted(text.substring(at)));
        }
        return new Layout(blocks);
    }

    /** Returns the blocks with their shapes and updates, as checkpoints describe the model. */
    public String text() {
        return blocks.stream()
                .map(block -> "%s %s %s;".formatted(block.name(), block.shape(), block.update()))
                .collect(Collectors.joining(" "));
    }

    /** Returns the blocks in order. */
    public List<Block> blocks() {
        return blocks;
    }

    /** Returns the number of elements of all blocks together. */
    public long length() {
        return offsets[blocks.size()];
    }

    /** Returns the offset of block number {@code position}. */
    public long offset(int position) {
        return offsets[position];
    }

    /**
     * Returns the number of the block called {@code name}.
     *
     * @throws IllegalArgumentException when there is none; the message lists those there are
     */
    public int position(String name) {
        Integer position = positions.get(name);
        if (position == null) {
            throw new IllegalArgumentException("no block is called '%s'; these are: %s"
                    .formatted(name, blocks.stream().map(Block::name).toList()));
        }
        return position;
    }

    /** Returns the block that element {@code index} of the flat vector belongs to. */
    public Block blockAt(long index) {
        for (int i = 0; i < blocks.size(); i++) {
            if (index >= offsets[i] && index < offsets[i + 1]) {
                return blocks.get(i);
            }
        }
        throw new IndexOutOfBoundsException("%d of %d".formatted(index, length()));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Layout that && blocks.equals(that.blocks);
    }

    @Override
    public int hashCode() {
        return blocks.hashCode();
    }

    @Override
    public String toString() {
        return blocks.toString();
    }
}
