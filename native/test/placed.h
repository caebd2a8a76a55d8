// The operands of an operation of the table, in memory of the device under test, with guards around each of them.
#pragma once

#include "operation_table.h"
#include "support.h"

// A call with the operands in host memory; a device is called with their mirrors. A call that must be refused is made
// without `ready`, because the preparation of a workspace writes it.
inline fcm_status call(const table::Operation &operation, fcm_context *context, const table::Size &size,
                       const table::Parameters &settings, const std::vector<table::Operand> &operands,
                       const table::Placement &placement, fcm_error *error, bool ready = true) {
#if defined(FCM_TEST_KIND)
    Mirror &mirror = Mirror::instance();
    mirror.send();
    table::Placement there = placement;
    for (size_t i = 0; i < operands.size(); ++i) {
        if (!operands[i].host) there.at[i] = mirror.twin(placement.at[i]);
    }
    if (ready && operation.ready) operation.ready(context, size, settings, there);
    const fcm_status status = settled(context, operation.call(context, size, settings, there, error), error);
    mirror.receive();
    return status;
#else
    (void)operands;
    if (ready && operation.ready) operation.ready(context, size, settings, placement);
    return operation.call(context, size, settings, placement, error);
#endif
}

class Placed {
   public:
    Placed(const table::Data &data, int64_t shift = 0, int64_t gap = 0) : data_(data) {
        const auto &operands = data.operands();
        for (size_t i = 0; i < operands.size(); ++i) {
            const auto number = static_cast<int64_t>(i);
            const int64_t clients = operands[i].clients(data.size());
            Held held;
            if (operands[i].host) {
                held.host.resize(static_cast<size_t>(operands[i].length));
            } else if (operands[i].element == 1) {
                held.bytes =
                    std::make_unique<ByteBatch>(clients, operands[i].length, (shift + number) % 4, gap == 0 ? 0 : gap + number);
            } else if (operands[i].element == 8) {
                held.doubles = std::make_unique<Doubles>(clients, operands[i].length, 1);
            } else {
                held.floats =
                    std::make_unique<Floats>(clients, operands[i].length, (shift + number) % 4, gap == 0 ? 0 : gap + number);
            }
            held_.push_back(std::move(held));
        }
        load(data);
    }

    void load(const table::Data &data) {
        data_ = data;
        for (size_t i = 0; i < held_.size(); ++i) {
            Held &held = held_[i];
            const std::vector<char> &bytes = data.bytes(i);
            if (held.floats != nullptr) {
                std::vector<float> values(bytes.size() / sizeof(float));
                if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
                held.floats->set(values);
            } else if (held.bytes != nullptr) {
                held.bytes->set(bytes);
            } else {
                std::vector<double> values(bytes.size() / sizeof(double));
                if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
                if (held.doubles != nullptr) {
                    held.doubles->set(values);
                } else {
                    held.host = values;
                }
            }
        }
    }

    table::Placement placement() {
        table::Placement p;
        for (size_t i = 0; i < held_.size(); ++i) {
            Held &held = held_[i];
            p.at[i] = held.floats != nullptr    ? static_cast<void *>(held.floats->data())
                      : held.bytes != nullptr   ? static_cast<void *>(held.bytes->data())
                      : held.doubles != nullptr ? static_cast<void *>(held.doubles->data())
                                                : static_cast<void *>(held.host.data());
            p.stride[i] = held.floats != nullptr  ? held.floats->stride()
                          : held.bytes != nullptr ? held.bytes->stride()
                                                  : data_.operands()[i].length;
            if (data_.operands()[i].use == table::Use::kRoom) p.room_bytes = data_.operands()[i].length * 8;
        }
        return p;
    }

    // The current contents of the memory.
    table::Data values() const {
        table::Data now = data_;
        for (size_t i = 0; i < held_.size(); ++i) {
            const Held &held = held_[i];
            const auto copy = [&](const auto &all) {
                if (!all.empty()) std::memcpy(now.bytes(i).data(), all.data(), all.size() * sizeof all[0]);
            };
            if (held.floats != nullptr) {
                copy(held.floats->values());
            } else if (held.bytes != nullptr) {
                copy(held.bytes->values());
            } else if (held.doubles != nullptr) {
                copy(held.doubles->values());
            } else {
                copy(held.host);
            }
        }
        return now;
    }

    // Whether the loaded values are unchanged, in all operands or only in the inputs.
    bool untouched(bool inputs_only = false) const {
        const table::Data now = values();
        bool same = true;
        for (size_t i = 0; i < held_.size(); ++i) {
            const table::Use use = data_.operands()[i].use;
            const bool matters = use == table::Use::kRead || (use == table::Use::kWritten && !inputs_only);
            same = same && (!matters || now.bytes(i) == data_.bytes(i));
        }
        return same;
    }

    bool guards_intact() {
        bool intact = true;
        for (Held &held : held_) {
            if (held.floats != nullptr) intact = intact && held.floats->guards_intact();
            if (held.bytes != nullptr) intact = intact && held.bytes->guards_intact();
            if (held.doubles != nullptr) intact = intact && held.doubles->guards_intact();
        }
        return intact;
    }

    fcm_status run(const table::Operation &operation, fcm_context *context, const table::Parameters &settings,
                   fcm_error *error = nullptr) {
        return call(operation, context, data_.size(), settings, data_.operands(), placement(), error);
    }

   private:
    struct Held {
        std::unique_ptr<Floats> floats;
        std::unique_ptr<Doubles> doubles;
        std::unique_ptr<ByteBatch> bytes;
        std::vector<double> host;
    };

    table::Data data_;
    std::vector<Held> held_;
};
