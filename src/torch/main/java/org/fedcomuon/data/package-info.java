/**
 * Data sets and their distribution among clients. {@link org.fedcomuon.data.Mnist}, {@link org.fedcomuon.data.Cifar10},
 * and for data of your own {@link org.fedcomuon.data.ArrayFiles}, {@link org.fedcomuon.data.CsvFile} and
 * {@link org.fedcomuon.data.ImageDirectory} give a {@link org.fedcomuon.data.LabelledDataset};
 * {@link org.fedcomuon.data.WikiText2} and {@link org.fedcomuon.data.TextFile} give a
 * {@link org.fedcomuon.data.TextDataset}. A {@link org.fedcomuon.data.Partition} gives each client its own examples or
 * blocks of text. {@link org.fedcomuon.data.Batches} turns a client's {@link org.fedcomuon.problem.Sample} into a
 * mini-batch, {@link org.fedcomuon.data.Episodes} into two for meta learning, and
 * {@link org.fedcomuon.data.TwoClassBatches} into one with examples of both classes.
 *
 * <p>The same seed gives the same examples to the same client in the same order, on any machine and any JDK.
 */
@NullMarked
package org.fedcomuon.data;

import org.jspecify.annotations.NullMarked;
