package org.fedcomuon.data;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;

/** The words that a model of language knows, by number. Immutable. */
public final class Vocabulary {
    /** Stands for every word that is not in it. */
    public static final String UNKNOWN = "<unk>";

    /** Stands at the end of every line. */
    public static final String END = "<eos>";

    private final List<String> words;
    private final Map<String, Integer> ids;
    private final int unknown;

    /**
     * Creates a vocabulary.
     *
     * @param words different ones, {@link #UNKNOWN} and {@link #END} among them; a word's place is its number
     */
    public Vocabulary(List<String> words) {
        this.words = List.copyOf(words);
        if (new HashSet<>(this.words).size() < this.words.size()
                || !this.words.contains(UNKNOWN)
                || !this.words.contains(END)) {
            throw new IllegalArgumentException("a vocabulary has %s and %s, and no word twice".formatted(UNKNOWN, END));
        }
        ids = new HashMap<>();
        for (String word : this.words) {
            ids.put(word, ids.size());
        }
        unknown = id(UNKNOWN);
    }

    /** How many words. */
    public int size() {
        return words.size();
    }

    /** The number of a word, or that of {@link #UNKNOWN}. */
    public int id(String word) {
        return ids.getOrDefault(word, unknown);
    }

    /** The word with a number. */
    public String word(int id) {
        return words.get(id);
    }
}
