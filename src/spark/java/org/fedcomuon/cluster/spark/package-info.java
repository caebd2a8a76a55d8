/**
 * Members of a federation in the executors of Apache Spark.
 *
 * <p>Not in the module {@code org.fedcomuon}, because Spark's jars are no modules: this is compiled against a class
 * path and used on one, by {@code ./fedcomuon train --cluster spark://...} or {@code spark-submit}.
 *
 * <p>One partition is one member. Between two meetings a member's training goes on in a thread of its executor; a job
 * brings it the last answer and returns what it brings to the next meeting. An executor that is lost takes its members
 * with it: Spark gives their partitions to others, where they start from the last checkpoint, hear the answers since
 * then once more, and bring what they would have brought.
 */
@org.jspecify.annotations.NullMarked
package org.fedcomuon.cluster.spark;
