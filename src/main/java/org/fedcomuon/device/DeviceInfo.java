package org.fedcomuon.device;

import java.util.Optional;

/**
 * A device that is here, or one that is not, with the reason.
 *
 * @param name what to open it by, such as {@code cpu:0}; just the kind, {@code cuda}, where none of that kind is here
 * @param model what it is called by its maker
 * @param memoryBytes its memory, 0 when not known
 * @param instructionSet the best the CPU has
 * @param reason why it cannot be used, empty when it can
 */
public record DeviceInfo(
        String name, String model, long memoryBytes, Optional<InstructionSet> instructionSet, Optional<String> reason) {
    /** Whether it can be opened. */
    public boolean available() {
        return reason.isEmpty();
    }
}
