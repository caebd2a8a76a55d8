package org.fedcomuon.data;

/**
 * Training and test images.
 *
 * @param train for the clients
 * @param test for the evaluation only
 * @param description which dataset it is, in words
 * @param sha256 of the content, 64 hexadecimal digits; it identifies the data in the configuration of a run
 */
public record ImageDataset(ImageSet train, ImageSet test, String description, String sha256) {}
