/**
 * Data sets and their distribution among clients: {@link org.fedcomuon.data.Mnist} and
 * {@link org.fedcomuon.data.Cifar10} give an {@link org.fedcomuon.data.ImageDataset},
 * {@link org.fedcomuon.data.WikiText2} gives a {@link org.fedcomuon.data.TextDataset}, a
 * {@link org.fedcomuon.data.Partition} gives each client its own images or blocks of text, and
 * {@link org.fedcomuon.data.Batches} turns a client's {@link org.fedcomuon.problem.Sample} into a mini-batch,
 * {@link org.fedcomuon.data.Episodes} into two for meta learning.
 *
 * <p>The same seed gives the same images to the same client in the same order, on any machine and any JDK.
 */
@NullMarked
package org.fedcomuon.data;

import org.jspecify.annotations.NullMarked;
