package org.fedcomuon.experiment;

import java.util.List;

/**
 * Methods, models, data sets, splits and objectives of one's own, which configurations then choose by name as they
 * choose ours. Providers are found by {@link java.util.ServiceLoader}: on the class path or module path of the program,
 * or in the jars that {@code train --class-path} names.
 *
 * <p>Called by the thread that first reads a configuration.
 */
public interface ChoiceProvider {
    /** Returns methods. */
    default List<MethodChoice> methods() {
        return List.of();
    }

    /** Returns models. */
    default List<ModelChoice> models() {
        return List.of();
    }

    /** Returns data sets. */
    default List<DataChoice> dataSets() {
        return List.of();
    }

    /** Returns splits. */
    default List<SplitChoice> splits() {
        return List.of();
    }

    /** Returns objectives. */
    default List<ObjectiveChoice> objectives() {
        return List.of();
    }
}
