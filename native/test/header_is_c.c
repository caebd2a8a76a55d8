/* The header is valid C11, and the basic functions work from C: version, devices, contexts, errors. */
#include <stdio.h>
#include <string.h>

#include "fedcomuon.h"

static int failures = 0;

static void expect_at(int line, int condition, const char *words) {
    if (condition) return;
    printf("line %d: %s\n", line, words);
    ++failures;
}
#define EXPECT(condition) expect_at(__LINE__, (condition), #condition)

/* The layout is part of the interface, because foreign callers use these offsets. */
_Static_assert(sizeof(fcm_error) == 512, "fcm_error");
_Static_assert(sizeof(fcm_device_info) == 408, "fcm_device_info");
_Static_assert(sizeof(fcm_matrix_block) == 56, "fcm_matrix_block");

static void check_refusal(int line, fcm_status status, fcm_status wanted, const fcm_error *error,
                          const char *function) {
    expect_at(line, status == wanted, "the status is another one");
    expect_at(line, error->status == wanted, "the status in the error is another one");
    expect_at(line, strncmp(error->message, function, strlen(function)) == 0, "the message does not name the function");
    expect_at(line, strlen(error->message) > strlen(function) + 2, "the message gives no reason");
    expect_at(line, error->client == -1 && error->block == -1 && error->index == -1, "a place is given");
}

static void devices(void) {
    static const fcm_device_info untouched = {-7, -7, -7, -7, -7, "name", "reason"};
    int32_t count = -1;
    int32_t cpus = 0;
    int32_t i;
    fcm_device_info info;
    fcm_error error;
    EXPECT(fcm_device_count(&count, NULL) == FCM_OK);
    EXPECT(count >= 1);
    for (i = 0; i < count; ++i) {
        EXPECT(fcm_device_describe(i, &info, NULL) == FCM_OK);
        EXPECT(info.kind == FCM_CPU || info.kind == FCM_CUDA || info.kind == FCM_CUDASIM);
        EXPECT(info.available == 0 || info.available == 1);
        EXPECT(info.name[0] != '\0');
        EXPECT((info.reason[0] == '\0') == (info.available == 1));
        EXPECT(info.available == 0 || info.ordinal >= 0);
        if (info.kind == FCM_CPU) {
            EXPECT(info.available == 1);
            EXPECT(info.isa >= FCM_ISA_BASELINE && info.isa <= FCM_ISA_AVX512_BF16);
            EXPECT(info.memory_bytes > 0);
            ++cpus;
        }
    }
    EXPECT(cpus == 1);

    info = untouched;
    check_refusal(__LINE__, fcm_device_describe(-1, &info, &error), FCM_INVALID_ARGUMENT, &error,
                  "fcm_device_describe");
    check_refusal(__LINE__, fcm_device_describe(count, &info, &error), FCM_INVALID_ARGUMENT, &error,
                  "fcm_device_describe");
    EXPECT(fcm_device_describe(count, &info, NULL) == FCM_INVALID_ARGUMENT);
    EXPECT(memcmp(&info, &untouched, sizeof info) == 0);
    check_refusal(__LINE__, fcm_device_describe(0, NULL, &error), FCM_INVALID_ARGUMENT, &error, "fcm_device_describe");
    check_refusal(__LINE__, fcm_device_count(NULL, &error), FCM_INVALID_ARGUMENT, &error, "fcm_device_count");
}

static void refused_context(int line, int32_t kind, int32_t ordinal, int32_t threads, int32_t isa, fcm_status wanted) {
    static int nowhere;
    fcm_context *const untouched = (fcm_context *)&nowhere;
    fcm_context *context = untouched;
    fcm_error error;
    check_refusal(line, fcm_context_create(kind, ordinal, threads, isa, &context, &error), wanted, &error,
                  "fcm_context_create");
    expect_at(line, fcm_context_create(kind, ordinal, threads, isa, &context, NULL) == wanted, "without an error");
    expect_at(line, context == untouched, "the context was written");
}

static void contexts(void) {
    fcm_context *context = NULL;
    fcm_device_info info;
    fcm_error error;
    int32_t isa;
    EXPECT(fcm_device_describe(0, &info, NULL) == FCM_OK);
    for (isa = FCM_ISA_AUTO; isa <= info.isa; ++isa) {
        int32_t used = -1;
        EXPECT(fcm_context_create(FCM_CPU, 3, 2, isa, &context, &error) == FCM_OK);
        EXPECT(context != NULL);
        EXPECT(fcm_context_isa(context, &used, &error) == FCM_OK);
        EXPECT(used == (isa == FCM_ISA_AUTO ? info.isa : isa));
        check_refusal(__LINE__, fcm_context_isa(context, NULL, &error), FCM_INVALID_ARGUMENT, &error,
                      "fcm_context_isa");
        fcm_context_destroy(context);
    }
    for (isa = info.isa + 1; isa <= FCM_ISA_AVX512_BF16; ++isa) {
        refused_context(__LINE__, FCM_CPU, 0, 1, isa, FCM_UNSUPPORTED);
    }
    fcm_context_destroy(NULL);

    refused_context(__LINE__, FCM_CUDA, 0, 1, FCM_ISA_AUTO, FCM_UNSUPPORTED);
    refused_context(__LINE__, FCM_CUDASIM, 0, 1, FCM_ISA_AUTO, FCM_UNSUPPORTED);
    refused_context(__LINE__, -1, 0, 1, FCM_ISA_AUTO, FCM_INVALID_ARGUMENT);
    refused_context(__LINE__, 3, 0, 1, FCM_ISA_AUTO, FCM_INVALID_ARGUMENT);
    refused_context(__LINE__, FCM_CPU, -1, 1, FCM_ISA_AUTO, FCM_INVALID_ARGUMENT);
    refused_context(__LINE__, FCM_CPU, 0, 0, FCM_ISA_AUTO, FCM_INVALID_ARGUMENT);
    refused_context(__LINE__, FCM_CPU, 0, -1, FCM_ISA_AUTO, FCM_INVALID_ARGUMENT);
    refused_context(__LINE__, FCM_CPU, 0, INT32_MAX, FCM_ISA_AUTO, FCM_INVALID_ARGUMENT);
    refused_context(__LINE__, FCM_CPU, 0, 1, -1, FCM_INVALID_ARGUMENT);
    refused_context(__LINE__, FCM_CPU, 0, 1, FCM_ISA_AVX512_BF16 + 1, FCM_INVALID_ARGUMENT);
    check_refusal(__LINE__, fcm_context_create(FCM_CPU, 0, 1, FCM_ISA_AUTO, NULL, &error), FCM_INVALID_ARGUMENT, &error,
                  "fcm_context_create");
    check_refusal(__LINE__, fcm_context_isa(NULL, &isa, &error), FCM_INVALID_ARGUMENT, &error, "fcm_context_isa");
}

int main(void) {
    EXPECT(fcm_abi_version() == FCM_ABI_VERSION);
    EXPECT(strncmp(fcm_build_info(), "fedcomuon ", 10) == 0);
    EXPECT(strchr(fcm_build_info(), '\n') == NULL);
    devices();
    contexts();
    return failures == 0 ? 0 : 1;
}
