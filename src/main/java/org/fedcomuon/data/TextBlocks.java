package org.fedcomuon.data;

import java.util.Objects;

/**
 * A text as numbers of words, cut into blocks of one length. In each place of a block the word that follows in the text
 * is to be foretold, so the word after a block is needed too; what is left over at the end, less than a block, is not
 * used. Immutable.
 */
public final class TextBlocks {
    private final int[] tokens;
    private final int length;

    /**
     * Creates the blocks of a text.
     *
     * @param tokens numbers of words
     * @param length of a block
     * @throws IllegalArgumentException when there is not one block
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

    /** How many words the text has, with the ends of its lines. */
    public int tokens() {
        return tokens.length;
    }

    /** The number of the word at a place in the text. */
    public int token(int place) {
        return tokens[place];
    }

    /** How many blocks. */
    public int count() {
        return (tokens.length - 1) / length;
    }

    /** Words a block. */
    public int length() {
        return length;
    }

    /** Writes a block to {@code inputs} and the words that follow in each place to {@code targets}. */
    public void copyTo(int block, long[] inputs, long[] targets, int offset) {
        int from = Objects.checkIndex(block, count()) * length;
        Objects.checkFromIndexSize(offset, length, Math.min(inputs.length, targets.length));
        for (int i = 0; i < length; i++) {
            inputs[offset + i] = tokens[from + i];
            targets[offset + i] = tokens[from + i + 1];
        }
    }

    /** For messages only. */
    @Override
    public String toString() {
        return "%d words in %d blocks of %d".formatted(tokens(), count(), length);
    }
}
