package org.fedcomuon.data;

/**
 * What a model of language is trained on and tested with.
 *
 * @param train for the clients
 * @param test for the evaluation only
 * @param vocabulary the words of the training text
 * @param description which dataset it is, and how many words and blocks it has, in words
 * @param sha256 of the content, 64 hexadecimal digits; for the configuration of a run, by which it is found again
 */
public record TextDataset(
        TextBlocks train, TextBlocks test, Vocabulary vocabulary, String description, String sha256) {}
