package org.fedcomuon.data;

import java.util.Objects;

/**
 * A text as token ids, cut into blocks of one length. At each position of a block the next word of the text is
 * predicted, so the word after a block is needed too; an incomplete block at the end is not used. Immutable.
 */
public final class TextBlocks {
    private final int[] tokens;
    private final int length;

    /**
     * Creates the blocks of a text.
     *
     * @param tokens the ids of the words
     * @param length of a block
     * @throws IllegalArgumentException when the text is shorter than one block
     */
    public TextBlocks(int[] tokens, int length) {
        if (length < 1) {
            throw new IllegalArgumentException("blocks of %d words; 1 is the least".formatted(length));
        }
        if (tokens.length <= length) {
            throw new IllegalArgumentException(
                    "%d words; a block of %d and the word after it are needed".formatted(tokens.length, length));
        }
        this.tokens = tokens.clone();
        this.length = length;
    }

    /** Returns the number of words of the text, including the ends of its lines. */
    public int tokens() {
        return tokens.length;
    }

    /** Returns the id of the word at a position in the text. */
    public int token(int place) {
        return tokens[place];
    }

    /** Returns the number of blocks. */
    public int count() {
        return (tokens.length - 1) / length;
    }

    /** Returns the number of words per block. */
    public int length() {
        return length;
    }

    /** Writes a block to {@code inputs} and the next word for each position to {@code targets}. */
    public void copyTo(int block, long[] inputs, long[] targets, int offset) {
        int from = Objects.checkIndex(block, count()) * length;
        Objects.checkFromIndexSize(offset, length, Math.min(inputs.length, targets.length));
        for (int i = 0; i < length; i++) {
            inputs[offset + i] = tokens[from + i];
            targets[offset + i] = tokens[from + i + 1];
        }
    }

    /** Returns a description for messages. */
    @Override
    public String toString() {
        return "%d words in %d blocks of %d".formatted(tokens(), count(), length);
    }
}
