package org.fedcomuon.data;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;

/**
 * Training and test text for a language model.
 *
 * @param train for the clients
 * @param test for the evaluation only
 * @param vocabulary the words of the training text
 * @param description the name of the data set and its numbers of words and blocks, as text
 * @param sha256 of the content, 64 hexadecimal digits; it identifies the data in the configuration of a run
 */
public record TextDataset(TextBlocks train, TextBlocks test, Vocabulary vocabulary, String description, String sha256) {

    /** The words that a language model knows, by id. Immutable. */
    public static final class Vocabulary {
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
         * @param words distinct words, among them {@link #UNKNOWN} and {@link #END}; the index of a word is its id
         */
        public Vocabulary(List<String> words) {
            this.words = List.copyOf(words);
            if (new HashSet<>(this.words).size() < this.words.size()
                    || !this.words.contains(UNKNOWN)
                    || !this.words.contains(END)) {
                throw new IllegalArgumentException(
                        "a vocabulary has %s and %s, and no word twice".formatted(UNKNOWN, END));
            }
            ids = new HashMap<>();
            for (String word : this.words) {
                ids.put(word, ids.size());
            }
            unknown = id(UNKNOWN);
        }

        /** Returns the number of words. */
        public int size() {
            return words.size();
        }

        /** Returns the id of a word, or that of {@link #UNKNOWN}. */
        public int id(String word) {
            return ids.getOrDefault(word, unknown);
        }

        /** Returns the word with this id. */
        public String word(int id) {
            return words.get(id);
        }
    }
}
