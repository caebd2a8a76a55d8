/**
 * Members of a federation in the executors of Apache Spark.
 *
 * <p>Not in the module {@code org.fedcomuon}, because Spark's jars are not modules: this package is compiled against a
 * class path and used on one, by {@code ./fedcomuon train --cluster spark://...} or {@code spark-submit}.
 *
 * <p>One partition is one member. Between two exchanges a member trains in a thread of its executor; a Spark job brings
 * it the last reply and returns its contribution to the next exchange. When an executor is lost, Spark gives the
 * partitions of its members to other executors, where they start from the last checkpoint, receive the replies since
 * then once more, and contribute what they would have contributed.
 */
@org.jspecify.annotations.NullMarked
package org.fedcomuon.cluster.spark;
