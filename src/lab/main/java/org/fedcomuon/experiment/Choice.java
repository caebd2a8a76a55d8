package org.fedcomuon.experiment;

import java.util.List;

/**
 * An entry that a configuration chooses by its name, such as the model {@code vit}. Called by many threads;
 * implementations are immutable.
 */
public interface Choice {
    /** Returns the value of the setting that chooses it. */
    String name();

    /** Returns the settings that a run has only because of this choice, in the order of {@code config.yaml}. */
    List<Setting> settings();
}
