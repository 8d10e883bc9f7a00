#pragma once
// Interpreter: one rendering of a template. Does not include LibTorch.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/text/jinja/language/syntax.h"
#include "models/text/jinja/library/library.h"
#include "models/text/jinja/run/output.h"

namespace zero::jinja {

/// The variables of one call of a function.
struct Frame : Object {
  Frame(Budget* budget, std::shared_ptr<Frame> parent, int depth, int count);
  void clear() override { slots.clear(); }
  Value& operator[](Slot slot);

  std::shared_ptr<Frame> parent;  // of the enclosing function
  int depth;
  bool kept = false;  // a macro or a loop refers to this frame, so it lives until the rendering ends
  std::vector<Value> slots;
};

using FramePointer = std::shared_ptr<Frame>;

/// The text of a generation block.
struct GeneratedSpan {
  std::size_t begin = 0, end = 0;  // code points of the text
  std::size_t byte = 0;            // offset of its beginning in the text
  Value written;
};

class Interpreter {
 public:
  /// `variables` is a dict of the template's variables.
  Interpreter(const Syntax& syntax, Runtime& runtime, Value variables);

  /// Returns the text. `spans` receives the positions of generation blocks in code points. As in transformers, a
  /// position is computed from the text that has been written when the block ends.
  std::string run(std::vector<GeneratedSpan>& spans);

 private:
  friend struct Macro;
  enum class Flow : std::uint8_t { on, break_loop, continue_loop };

  Value evaluate(const Expression& expression, const FramePointer& frame);
  Value evaluate_operator(const Expression& expression, const FramePointer& frame);
  Value load(const Expression& name, const FramePointer& frame);
  Value make_dict(const Expression& expression, const FramePointer& frame);
  Value concatenate(const Expression& expression, const FramePointer& frame);
  bool compare(const Expression& expression, const FramePointer& frame);
  Arguments arguments_of(const CallArguments& given, const FramePointer& frame);
  Value call_expression(const Expression& expression, const FramePointer& frame, const Value* caller);
  Value filter(const Expression& expression, const FramePointer& frame, const Value* held);
  bool test(const Expression& expression, const FramePointer& frame);

  Flow execute(const Block& block, const FramePointer& frame);
  Flow execute(const Statement& statement, const FramePointer& frame);
  Flow execute_condition(const Statement& statement, const FramePointer& frame);
  Flow execute_inner(const Statement& statement, const FramePointer& frame);
  Flow execute_loop(const Statement& statement, const FramePointer& frame);
  Flow iterate(const Statement& statement, const Value& source, std::int64_t depth, const FramePointer& frame,
               std::function<Value(const Value&)> recurse);
  Value render_recursive(const Statement& statement, const Value& source, std::int64_t depth,
                         const FramePointer& outer);
  Flow assign_block(const Statement& statement, const FramePointer& frame);
  void write(const Value& value);
  void assign(const Target& target, const Value& value, const FramePointer& frame, Slot Target::*slot = &Target::slot);
  void enter(const std::vector<Load>& loads, const FramePointer& frame);
  Value resolve(const std::string& name);

  Value make_macro(const Function& function, const FramePointer& frame);
  Value call_function(const Function& function, const FramePointer& closure, const Arguments& arguments);
  void bind(const Function& function, const FramePointer& frame, const Arguments& arguments);
  void keep(const FramePointer& frame);

  const Syntax& syntax_;
  Runtime& runtime_;
  Budget& budget_;
  Value variables_;
  Output* out_ = nullptr;    // where statements write
  Output* whole_ = nullptr;  // the template's own
  std::vector<GeneratedSpan>* spans_ = nullptr;
};

}  // namespace zero::jinja
