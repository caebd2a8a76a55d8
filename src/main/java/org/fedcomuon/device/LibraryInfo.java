package org.fedcomuon.device;

import java.util.Optional;

/**
 * A library of NVIDIA's that GPUs compute with and no build of ours ships: which one will be used, or why none.
 *
 * @param name what NVIDIA calls it, such as {@code cuBLAS}
 * @param version its own, empty when it is not here
 * @param file where it was found
 * @param binding how it is called: {@code Panama} or {@code JCuda}
 * @param reason why it cannot be used, empty when it can
 */
public record LibraryInfo(
        String name,
        Optional<String> version,
        Optional<String> file,
        Optional<String> binding,
        Optional<String> reason) {
    static LibraryInfo found(String name, String version, String file, String binding) {
        return new LibraryInfo(name, Optional.of(version), Optional.of(file), Optional.of(binding), Optional.empty());
    }

    static LibraryInfo missing(String name, String reason) {
        return new LibraryInfo(name, Optional.empty(), Optional.empty(), Optional.empty(), Optional.of(reason));
    }

    /** Whether it can be used. */
    public boolean available() {
        return reason.isEmpty();
    }

    @Override
    public String toString() {
        return available()
                ? "%s %s through %s (%s)"
                        .formatted(name, version.orElseThrow(), binding.orElseThrow(), file.orElseThrow())
                : "%s not available: %s".formatted(name, reason.orElseThrow());
    }
}
