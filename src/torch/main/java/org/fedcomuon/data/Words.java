package org.fedcomuon.data;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.fedcomuon.file.MalformedFileException;

/**
 * The words of a text, numbered in the order of their first occurrence. Words are separated by ASCII white space and
 * not changed; {@link TextDataset.Vocabulary#END} stands for the end of each line.
 */
final class Words {
    private static final int LONGEST = 1000;
    private static final int MOST_DIFFERENT = 1_000_000;

    private final List<String> distinct = new ArrayList<>();
    private final Map<String, Integer> ids = new HashMap<>();
    private int[] tokens = new int[1 << 12];
    private int size;

    private Words() {}

    /**
     * Splits a text into words.
     *
     * @param file for messages
     * @throws MalformedFileException when it has no words, is not UTF-8, or is not a text
     */
    static Words of(Path file, byte[] content) throws MalformedFileException {
        var words = new Words();
        CharsetDecoder decoder = StandardCharsets.UTF_8.newDecoder(); // reports malformed input
        int line = 1;
        int start = startOf(content);
        for (int at = start; at <= content.length; at++) {
            byte c = at < content.length ? content[at] : (byte) '\n';
            if (c == 0) {
                throw new MalformedFileException(
                        file, "a zero byte in line %d; a text in UTF-8 has none".formatted(line));
            }
            if (c != ' ' && (c < '\t' || c > '\r')) {
                continue;
            }
            if (at - start > LONGEST) {
                throw new MalformedFileException(
                        file,
                        "a word of %d bytes in line %d; at most %d are possible".formatted(at - start, line, LONGEST));
            }
            if (at > start) {
                try {
                    words.add(decoder.decode(ByteBuffer.wrap(content, start, at - start))
                            .toString());
                } catch (CharacterCodingException _) {
                    throw new MalformedFileException(
                            file, "line %d is not in UTF-8; convert it, or fetch it again".formatted(line));
                }
            }
            boolean ended = at == content.length && (at == 0 || content[at - 1] == '\n');
            if (c == '\n' && !ended) {
                words.add(TextDataset.Vocabulary.END);
                line++;
            }
            start = at + 1;
            if (words.distinct.size() > MOST_DIFFERENT) {
                throw new MalformedFileException(
                        file, "more than %d different words; is it a text?".formatted(MOST_DIFFERENT));
            }
        }
        if (words.distinct.stream().allMatch(TextDataset.Vocabulary.END::equals)) {
            throw new MalformedFileException(file, "the file has no words; a text is needed");
        }
        return words;
    }

    /** Returns where the text starts, after an optional byte order mark. */
    private static int startOf(byte[] content) {
        byte[] mark = {(byte) 0xef, (byte) 0xbb, (byte) 0xbf};
        return content.length >= mark.length && Arrays.equals(content, 0, mark.length, mark, 0, mark.length)
                ? mark.length
                : 0;
    }

    private void add(String word) {
        int id = ids.computeIfAbsent(word, _ -> {
            distinct.add(word);
            return distinct.size() - 1;
        });
        if (size == tokens.length) {
            tokens = Arrays.copyOf(tokens, 2 * size);
        }
        tokens[size++] = id;
    }

    /** Returns the number of words, including the ends of lines. */
    int size() {
        return size;
    }

    /** Returns the number of distinct words, without the two special ones. */
    long different() {
        return distinct.stream()
                .filter(word ->
                        !word.equals(TextDataset.Vocabulary.END) && !word.equals(TextDataset.Vocabulary.UNKNOWN))
                .count();
    }

    /**
     * Returns the most frequent words, the most frequent first; equally frequent words are in the order of their first
     * occurrence.
     *
     * @param most the size of the vocabulary with the two special words, which are always in it; at least 3
     */
    TextDataset.Vocabulary vocabulary(int most) {
        var counts = new int[distinct.size()];
        Arrays.stream(tokens, 0, size).forEach(id -> counts[id]++);
        List<String> sorted = new ArrayList<>(IntStream.range(0, counts.length)
                .boxed()
                .sorted(Comparator.comparingInt((Integer id) -> -counts[id])) // stable
                .map(distinct::get)
                .toList());
        List<String> special = List.of(TextDataset.Vocabulary.END, TextDataset.Vocabulary.UNKNOWN);
        long missing = special.stream().filter(word -> !sorted.contains(word)).count();
        for (int i = sorted.size() - 1; i >= 0 && sorted.size() + missing > most; i--) {
            if (!special.contains(sorted.get(i))) {
                sorted.remove(i);
            }
        }
        for (String word : special) {
            if (!sorted.contains(word)) {
                sorted.add(word);
            }
        }
        return new TextDataset.Vocabulary(sorted);
    }

    /** Returns the text as ids of a vocabulary, which may be that of another text. */
    int[] tokens(TextDataset.Vocabulary vocabulary) {
        int[] ids = distinct.stream().mapToInt(vocabulary::id).toArray();
        return Arrays.stream(tokens, 0, size).map(id -> ids[id]).toArray();
    }
}
