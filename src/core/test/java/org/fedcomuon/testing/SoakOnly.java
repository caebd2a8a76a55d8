package org.fedcomuon.testing;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/** Run by {@code ./fedcomuon test --soak} only: tests that wait for long, where a little of it would show nothing. */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@Tag(Soak.TAG)
@EnabledIfSystemProperty(
        named = "tests.soak",
        matches = "true",
        disabledReason = "takes minutes: ./fedcomuon test --soak")
public @interface SoakOnly {}
