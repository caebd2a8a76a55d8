/**
 * Datasets, and how they are dealt out: {@link org.fedcomuon.data.Mnist} gives an
 * {@link org.fedcomuon.data.ImageDataset}, a {@link org.fedcomuon.data.Partition} gives each client its own images, and
 * {@link org.fedcomuon.data.Batches} turns a client's {@link org.fedcomuon.problem.Sample} into a mini-batch.
 *
 * <p>The same seed gives the same images to the same client in the same order, on any machine and any JDK.
 */
@NullMarked
package org.fedcomuon.data;

import org.jspecify.annotations.NullMarked;
