package org.fedcomuon.data;

/**
 * What a model of images is trained on and tested with.
 *
 * @param train for the clients
 * @param test for the evaluation only
 * @param description which dataset it is, in words
 * @param sha256 of the content, 64 hexadecimal digits; for the configuration of a run, by which it is found again
 */
public record ImageDataset(ImageSet train, ImageSet test, String description, String sha256) {}
