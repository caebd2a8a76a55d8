package org.fedcomuon.problem;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Where the blocks of a model are in its one flat vector: one after the other, without gaps, in the order given.
 * Immutable.
 */
public final class Layout {
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

    /** The layout of these blocks; names must differ. */
    public static Layout of(Block... blocks) {
        return new Layout(List.of(blocks));
    }

    /** The layout of these blocks; names must differ. */
    public static Layout of(List<Block> blocks) {
        return new Layout(blocks);
    }

    /** The blocks in order. */
    public List<Block> blocks() {
        return blocks;
    }

    /** Elements of all blocks together. */
    public long length() {
        return offsets[blocks.size()];
    }

    /** Where block number {@code position} starts. */
    public long offset(int position) {
        return offsets[position];
    }

    /**
     * The number of the block called {@code name}.
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

    /** The block that element {@code index} of the flat vector belongs to. */
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
