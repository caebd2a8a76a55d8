package org.fedcomuon.testing;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;

/** Belongs to {@code ./fedcomuon test --gpu}: runs on the devices it is given, and what comes of it is reported. */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Tag("gpu")
@ExtendWith(GpuReport.Watcher.class)
@SuppressWarnings("exports") // tests see JUnit; users never see this
public @interface GpuSuite {}
