// The Python module assay_native: a lane's channel, values and replies; python/assay/lane.py uses
// it. One binary serves every CPython from 3.10 on (limited API). Its dependencies are linked in
// and hidden, because it shares a process with the symbols of frameworks.

#include <emmintrin.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/system_memory.h"
#include "case/case.h"
#include "case/parser.h"
#include "device/device.h"
#include "fill/fill.h"
#include "native/case_to_python.h"
#include "native/channel.h"
#include "native/filling.h"
#include "native/handing_over.h"
#include "native/memory.h"
#include "native/module_state.h"
#include "native/python.h"
#include "native/reply_builder.h"
#include "native/sending.h"
#include "wire/settings.h"

namespace assay::native {
namespace {

// A lane pins memory for its second batch: it takes 12 to 18 ms, and many lanes have only one
// batch.
constexpr std::uint64_t kPinAtBatch = 2;

// die_with_parent(signal): the kernel sends this signal when the parent process has ended.
PyObject* die_with_parent(PyObject*, PyObject* arguments) {
  int number = 0;
  if (!PyArg_ParseTuple(arguments, "i", &number)) return nullptr;
  ::prctl(PR_SET_PDEATHSIG, number);
  return none();
}

// Calls the functions that nearly every case needs, so that the device has loaded them.
Status warm_up(Device& device) {
  constexpr std::uint64_t kElements = 64;
  ASSAY_TRY(void* const memory, device.allocate(kElements * size_of(DType::complex128)));
  std::array<std::uint64_t, kDTypes.size()> sums{};
  Status status;
  for (std::size_t code = 0; code < kDTypes.size() && status; ++code) {
    const auto dtype = static_cast<DType>(code);
    status = device.fill(default_rule(dtype), FillKey{}, dtype, memory, kElements, 0);
    if (status) status = device.checksum(memory, kElements * size_of(dtype), &sums.at(code));
  }
  if (const Status done = device.synchronize(); status) status = done;
  device.release(memory);
  return status;
}

// prepare(device): opens the device before there is a channel, and warms it up.
PyObject* prepare_device(PyObject* module, PyObject* arguments) {
  const char* name = nullptr;
  if (!PyArg_ParseTuple(arguments, "s", &name)) return nullptr;
  auto opened = open_device(name);
  if (!opened) return raise(opened.error());
  if (const Status warm = warm_up(**opened); !warm) return raise(warm.error());
  state_of(module).device = std::move(*opened);
  return none();
}

// Memory left for page tables, copied pages of other lanes, and other processes.
constexpr std::uint64_t kPartSpared = 16;

// Limits the memory that the lane may still take. `closely`: to the memory that is free now, or
// half of it if another lane of the slot runs the same case. Otherwise to the machine's memory.
void bound(const ModuleState& state, bool closely) {
  if (!state.device->is_host())
    return;  // a GPU maps more address space than any machine has memory
  const auto memory = system_memory();
  if (!memory) return;
  const std::uint64_t spare = memory->total / kPartSpared;
  const std::uint64_t now = memory->available - std::min(memory->available, spare);
  state.memory.bound(!closely ? memory->total : state.channel->runs_alone() ? now : now / 2);
}

PyObject* open_channel(PyObject* module, PyObject* arguments) {
  int socket = -1;
  int arena = -1;
  PyObject* tensor_spec = nullptr;
  PyObject* dtype_name = nullptr;
  PyObject* place_name = nullptr;
  PyObject* fields = nullptr;
  const char* device = nullptr;
  int inputs = -1;
  if (!PyArg_ParseTuple(arguments, "iiOOOOs|i", &socket, &arena, &tensor_spec, &dtype_name,
                        &place_name, &fields, &device, &inputs)) {
    return nullptr;
  }
  auto channel = Channel::open(Fd(socket), Fd(arena));
  if (!channel) return raise(channel.error());
  ModuleState& state = state_of(module);
  state.channel.emplace(std::move(*channel));
  state.types = {borrowed(tensor_spec), borrowed(dtype_name), borrowed(place_name),
                 borrowed(fields)};
  if (state.device->name() != device) {
    auto opened = open_device(device);
    if (!opened) return raise(opened.error());
    state.device = std::move(*opened);
  } else if (const Status works = state.device->synchronize(); !works) {
    end_of_device(state, works.error());  // it failed after prepare(), which is no case's fault
  }
  if (inputs >= 0) {
    auto shared = SharedInputs::open(Fd(inputs));
    if (!shared) return raise(shared.error());
    state.inputs.emplace(std::move(*shared));
  }
  state.memory.open();
  bound(state, false);
  return none();
}

// A settings table as an object of `type`, assay.wire.Fields.
template <typename Table>
Ref fields_to_python(const Table& table, PyObject* type) {
  typename Table::NativeTableType unpacked;
  table.UnPackTo(&unpacked);
  Ref fields(PyDict_New());
  for (const wire::Setting& setting : wire::fields_of(unpacked)) {
    const Ref value = std::visit([](const auto& known) { return to_python(known); }, setting.value);
    if (!fields || !value ||
        PyDict_SetItem(fields.get(), to_python(setting.name).get(), value.get()) != 0) {
      return nullptr;
    }
  }
  return Ref(PyObject_CallFunctionObjArgs(type, fields.get(), nullptr));
}

// The arguments that make the case's layer, (args, kwargs); None if it calls a function.
Ref construction_or_none(const Case& parsed, const PythonTypes& types) {
  if (!parsed.constructs()) return borrowed(Py_None);
  const PythonCall made = construction_of(parsed, types);
  if (!made.args || !made.kwargs) return nullptr;
  return Ref(PyTuple_Pack(2, made.args.get(), made.kwargs.get()));
}

// parse(text, TensorSpec, DtypeName, PlaceName) -> (api, args, kwargs, construction): the fields of
// assay.wire.Job that a case's text states.
PyObject* parse_text(PyObject*, PyObject* arguments) {
  const char* text = nullptr;
  Py_ssize_t size = 0;
  PyObject* tensor_spec = nullptr;
  PyObject* dtype_name = nullptr;
  PyObject* place_name = nullptr;
  if (!PyArg_ParseTuple(arguments, "s#OOO", &text, &size, &tensor_spec, &dtype_name, &place_name)) {
    return nullptr;
  }
  Case parsed;
  if (const auto status = parse_case({text, static_cast<std::size_t>(size)}, parsed); !status) {
    return raise(Error{status.error().message});
  }
  const PythonTypes types{borrowed(tensor_spec), borrowed(dtype_name), borrowed(place_name), {}};
  const PythonCall call = call_of(parsed, types);
  const Ref api = to_python(parsed.api());
  const Ref construction = construction_or_none(parsed, types);
  if (!call.args || !call.kwargs || !api || !construction) return nullptr;
  return PyTuple_Pack(4, api.get(), call.args.get(), call.kwargs.get(), construction.get());
}

// Calls in a timed sample of each part, if the slot has chosen them.
Ref calls_of(const wire::Attempt& attempt) {
  std::vector<std::int64_t> calls;
  if (attempt.calls() != nullptr) calls.assign(attempt.calls()->begin(), attempt.calls()->end());
  return to_python(calls);
}

// The fields of assay.wire.Job.
PyObject* job_to_python(ModuleState& state) {
  const wire::Batch& batch = state.channel->batch();
  const wire::Job& job = state.channel->job();
  const std::uint64_t id = job.test_case()->id();
  if (const auto parsed = parse_case(job.test_case()->text()->string_view(), state.parsed);
      !parsed) {
    return raise(Error{"the slot sent a case that does not parse: " + parsed.error().message});
  }
  state.fillings.resize(state.parsed.tensor_count());
  const PythonCall call = call_of(state.parsed, state.types);
  const Ref api = to_python(state.parsed.api());
  const Ref construction = construction_or_none(state.parsed, state.types);
  const Ref calls = calls_of(*job.attempt());
  if (!call.args || !call.kwargs || !api || !construction || !calls) return nullptr;
  // The same for a whole batch.
  if (!state.settings || state.channel->index() == 0) {
    state.settings = fields_to_python(*batch.settings(), state.types.fields.get());
    state.lane = fields_to_python(*batch.lane(), state.types.fields.get());
  }
  if (!state.settings || !state.lane) return nullptr;
  const wire::TrialRequest& trial = *job.trial();
  const std::string_view mutant =  // the fault to plant; empty: none
      trial.mutant() != nullptr ? trial.mutant()->string_view() : "";
  const bool unfilled = job.attempt()->start() == wire::Start::test_lane_unfilled &&
                        batch.lane()->role() == wire::Role::test;
  return Py_BuildValue(
      "OOOnKOOOKs#Is#OO", api.get(), call.args.get(), call.kwargs.get(),
      static_cast<Py_ssize_t>(state.parsed.tensor_count()),
      static_cast<unsigned long long>(framework_seed(batch.settings()->seed(), id)),
      state.settings.get(), state.lane.get(), construction.get(),
      static_cast<unsigned long long>(id), trial.values()->c_str(),
      static_cast<Py_ssize_t>(trial.values()->size()),
      static_cast<unsigned int>(trial.perturbations()), mutant.data(),
      static_cast<Py_ssize_t>(mutant.size()), unfilled ? Py_True : Py_False, calls.get());
}

// bound_memory(closely): see bound().
PyObject* bound_memory(PyObject* module, PyObject* arguments) {
  int closely = 0;
  if (!PyArg_ParseTuple(arguments, "p", &closely)) return nullptr;
  bound(state_of(module), closely != 0);
  return none();
}

// scramble(on): whether memory is overwritten when it is given out and taken back.
PyObject* scramble(PyObject*, PyObject* arguments) {
  int on = 0;
  if (!PyArg_ParseTuple(arguments, "p", &on)) return nullptr;
  scramble_memory(on != 0);
  return none();
}

// wait(): returns when the device has finished all queued work.
PyObject* wait_for_device(PyObject* module, PyObject*) {
  ModuleState& state = state_of(module);
  // Kept replies go out with the next reply, whose checksums are not needed yet.
  if (const Status done = state.device->synchronize(); !done) end_of_device(state, done.error());
  return none();
}

// compiling(on): the running job compiles from now on, or goes on; that time is not its own.
PyObject* compiling(PyObject* module, PyObject* on) {
  ModuleState& state = state_of(module);
  if (state.channel) state.stages.leave_out(state.channel->compiling(on == Py_True));
  return none();
}

// enter(stage): the running job is in this Stage from now on.
PyObject* enter_stage(PyObject* module, PyObject* index) {
  const unsigned long stage = PyLong_AsUnsignedLong(index);
  if (PyErr_Occurred() != nullptr) return nullptr;
  ModuleState& state = state_of(module);
  if (!state.channel) return raise(Error{"no channel is open"});
  if (stage >= wire::kStagesOfLane) return raise(Error{"enter: no such stage"});
  state.stages.enter(stage);
  // For the slot, if the lane does not return from this stage.
  state.channel->arena().header().stage.store(static_cast<std::uint32_t>(stage),
                                              std::memory_order_relaxed);
  return none();
}

// times() -> nanoseconds in each Stage since the job started or times() was last called
PyObject* stage_times(PyObject* module, PyObject*) {
  const auto [build, forward, copy, backward] = state_of(module).stages.take();
  return Py_BuildValue("LLLL", static_cast<long long>(build), static_cast<long long>(forward),
                       static_cast<long long>(copy), static_cast<long long>(backward));
}

// evict(pointer, count, dtype): removes a tensor of the host from all caches.
PyObject* evict(PyObject*, PyObject* arguments) {
  Target target;
  if (!PyArg_ParseTuple(arguments, "Kni", &target.pointer, &target.count, &target.dtype)) {
    return nullptr;
  }
  if (!target.valid()) return raise(Error{"evict: bad dtype or count"});
  constexpr std::size_t kLine = 64;
  const std::span<std::byte> memory = target.memory();
  for (std::size_t at = 0; at < memory.size(); at += kLine) _mm_clflush(&memory[at]);
  if (!memory.empty()) _mm_clflush(&memory.back());
  _mm_mfence();
  return none();
}

// overwritten() -> numbers of the tensors whose bytes have changed since they were filled
PyObject* overwritten(PyObject* module, PyObject*) {
  const ModuleState& state = state_of(module);
  Ref numbers(PyList_New(0));
  // On a device, checksums arrive after the call, so nothing is reported.
  const std::size_t count = state.device->is_host() ? state.filled.size() : 0;
  for (std::size_t i = 0; numbers && i < count; ++i) {
    const FilledTensor& filled = state.filled[i];
    const std::uint64_t* before = state.fillings[filled.tensor].checksum;
    if (before == nullptr || checksum(filled.memory) == *before) continue;
    const Ref number(PyLong_FromUnsignedLong(filled.tensor));
    if (!number || PyList_Append(numbers.get(), number.get()) != 0) return nullptr;
  }
  return numbers.release();
}

// One run of a case: (status, phase, error, outputs, gradients, differentiable, nanoseconds,
// evaluations, overwritten, device_kb, self_only[, again]). False once a Python error is set.
bool read_run(PyObject* arguments, ReplyParts& parts, PyObject** again) {
  int status = 0;
  int differentiable = 0;
  int self_only = 0;
  int changed_state = 0;
  const char* phase = nullptr;
  const char* error = nullptr;
  Py_ssize_t phase_size = 0;
  Py_ssize_t error_size = 0;
  unsigned long long device_kb = 0;
  if (!PyArg_ParseTuple(arguments, "is#s#OOpOOOKp|pO", &status, &phase, &phase_size, &error,
                        &error_size, &parts.outputs, &parts.gradients, &differentiable,
                        &parts.nanoseconds, &parts.evaluations, &parts.overwritten, &device_kb,
                        &self_only, &changed_state, again)) {
    return false;
  }
  parts.status = static_cast<wire::Status>(status);
  parts.phase = {phase, static_cast<std::size_t>(phase_size)};
  parts.error = {error, static_cast<std::size_t>(error_size)};
  parts.differentiable = differentiable != 0;
  parts.device_kb = device_kb;
  parts.self_only = self_only != 0;
  parts.changed_state = changed_state != 0;
  return true;
}

// Whether the lane has child processes that run, and had none after the previous case. Orphans of
// the case are children of the lane (python/assay/orphans.py).
bool left_running(ModuleState& state) {
  siginfo_t ended{};
  const int got = ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT);
  const bool running = got == 0 && ended.si_pid == 0;
  return !std::exchange(state.has_children, running) && running;
}

// reply(status, phase, error, outputs, gradients, differentiable, nanoseconds, evaluations,
// overwritten, device_kb, self_only[, changed_state[, again]]): `again` lists the same for further
// runs of the case.
PyObject* reply(PyObject* module, PyObject* arguments) {
  ModuleState& state = state_of(module);
  if (!state.channel) return raise(Error{"no channel is open"});
  ReplyParts parts;
  PyObject* again = nullptr;
  if (!read_run(arguments, parts, &again)) return nullptr;
  if (again != nullptr && !PyList_Check(again)) return raise(Error{"reply: no list of runs"});
  std::vector<ReplyParts> runs(again != nullptr ? static_cast<std::size_t>(PyList_Size(again)) : 0);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    PyObject* none_further = nullptr;
    if (!read_run(PyList_GetItem(again, static_cast<Py_ssize_t>(i)), runs[i], &none_further)) {
      return nullptr;
    }
  }
  if (const Status ours = state.channel->check_socket(); !ours) return raise(ours.error());
  parts.index = state.channel->index();
  parts.inputs = state.fillings;
  parts.growth = state.memory.after_case(state.lent_bytes);
  parts.left_running = left_running(state);
  parts.again = runs;
  state.builder.Clear();
  if (!build_reply(parts, state.builder)) return nullptr;
  state.owes_answer = false;
  return none_if(send_reply(state));
}

void begin_job(ModuleState& state) {
  state.owes_answer = true;
  const Channel& channel = *state.channel;
  state.stages.begin();
  state.key = {channel.batch().settings()->seed(), channel.job().test_case()->id(), 0};
  state.fillings.clear();
  state.filled.clear();
  state.lent_bytes = 0;
  if (channel.index() > 0) return;
  state.device->end_sharing();
  state.marked_ns = monotonic_ns();
  // If pinning fails, copies only take longer.
  if (++state.batches == kPinAtBatch) {
    (void)state.device->pin(state.channel->arena().data(), kPinned);
  }
}

// next() -> the fields of assay.wire.Job. () if the lane shall only release lent results; None when
// the slot has closed the channel.
PyObject* next_job(PyObject* module, PyObject*) {
  ModuleState& state = state_of(module);
  if (!state.channel) return raise(Error{"no channel is open"});
  // This ends the lane while the header still names the job, so that the slot blames it.
  if (state.owes_answer) return raise(Error{"the case has prevented its answer"});
  const auto received = state.channel->next();
  if (!received) return raise(received.error());
  if (*received == Channel::Received::closed) return none();
  if (*received == Channel::Received::let_go) {
    state.device->end_sharing();
    return PyTuple_New(0);
  }
  begin_job(state);
  return job_to_python(state);
}

int execute(PyObject* module) {
  *static_cast<ModuleState**>(PyModule_GetState(module)) =
      std::make_unique<ModuleState>().release();
  // So that a lane need not ask for each small result.
  return PyModule_AddIntConstant(module, "LEND_FROM", kLendFrom);
}

void release(void* module) {
  void* slot = PyModule_GetState(static_cast<PyObject*>(module));
  if (slot != nullptr) std::unique_ptr<ModuleState>(*static_cast<ModuleState**>(slot)).reset();
}

}  // namespace
}  // namespace assay::native

// CPython's ABI needs mutable tables, because it fills them in.
PyMODINIT_FUNC PyInit_assay_native() {
  namespace n = assay::native;
  static std::array<PyMethodDef, 22> methods{{
      {"die_with_parent", n::die_with_parent, METH_VARARGS, nullptr},
      {"prepare", n::prepare_device, METH_VARARGS, nullptr},
      {"open", n::open_channel, METH_VARARGS, nullptr},
      {"next", n::next_job, METH_NOARGS, nullptr},
      {"parse", n::parse_text, METH_VARARGS, nullptr},
      {"fill", n::fill_tensor, METH_VARARGS, nullptr},
      {"fill_literal", n::fill_literal, METH_VARARGS, nullptr},
      {"fill_shared", n::fill_shared, METH_VARARGS, nullptr},
      {"fill_upstream_shared", n::fill_upstream_shared, METH_VARARGS, nullptr},
      {"fill_upstream", n::fill_upstream, METH_VARARGS, nullptr},
      {"lend", n::lend, METH_VARARGS, nullptr},
      {"hand_over", n::hand_over, METH_VARARGS, nullptr},
      {"scramble", n::scramble, METH_VARARGS, nullptr},
      {"bound_memory", n::bound_memory, METH_VARARGS, nullptr},
      {"wait", n::wait_for_device, METH_NOARGS, nullptr},
      {"compiling", n::compiling, METH_O, nullptr},
      {"enter", n::enter_stage, METH_O, nullptr},
      {"times", n::stage_times, METH_NOARGS, nullptr},
      {"evict", n::evict, METH_VARARGS, nullptr},
      {"overwritten", n::overwritten, METH_NOARGS, nullptr},
      {"reply", n::reply, METH_VARARGS, nullptr},
      {nullptr, nullptr, 0, nullptr},
  }};
  static std::array<PyModuleDef_Slot, 2> slots{{
      {Py_mod_exec, reinterpret_cast<void*>(n::execute)},
      {0, nullptr},
  }};
  static PyModuleDef definition{PyModuleDef_HEAD_INIT,
                                "assay_native",
                                "The lane's side of assay in C++.",
                                sizeof(n::ModuleState*),
                                methods.data(),
                                slots.data(),
                                nullptr,
                                nullptr,
                                n::release};
  return PyModuleDef_Init(&definition);
}
