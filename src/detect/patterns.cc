#include <span>

#include "detect/signs.h"

namespace belljar::detect {
namespace {

constexpr auto kDestination = Pattern::Needs::kDestination;
constexpr auto kSink = Pattern::Needs::kSink;
constexpr auto kColon = Pattern::Needs::kColon;
constexpr Roles kAnyModel = kModel | kAi;
constexpr Roles kAnyOrders = kOrders | kPrompt;
constexpr Roles kOurs = kYou | kEarlier | kOffice;  // whose orders

// A weight is what the combination says of a text that should be data; fifty is suspicious by itself. Those that ordinary text has
// as well weigh less, and count when several stand together.
constexpr Pattern kPatterns[] = {
    {"override", 60, 35, 4, {kDrop, kOurs, kAnyOrders}},
    {"override", 60, 20, 4, {kDrop, kAnyOrders, kEarlier}},
    {"override", 35, 0, 6, {kDrop, kAnyOrders}},
    {"override", 50, 20, 7, {kDrop, kYou, kGot}},
    {"override", 50, 20, 5, {kDrop, kOurs, kGot}},
    {"override", 50, 0, 4, {kDrop, kPerson, kAsk}},
    {"override", 50, 45, 3, {kYou, kAnyOrders, kDrop}},
    {"override", 50, 25, 4, {kNot, kFollow, kOurs, kAnyOrders}},
    {"override", 45, 15, 4, {kNot, kFollow, kAnyOrders}},
    {"override", 50, 25, 5, {kNot, kFollow, kAnyOrders, kGot}},
    {"override", 45, 45, 5, {kYou, kAnyOrders, kVoid}},
    {"override", 50, 40, 4, {kEarlier, kAnyOrders, kVoid, kFollow}},
    {"override", 15, 15, 4, {kEarlier, kAnyOrders, kVoid}},
    {"override", 55, 55, 8, {kOffice, kAnyOrders, kVoid, kFollow | kAct}},
    {"override", 45, 0, 4, {kDrop, kEarlier, kFollow}},
    {"override", 50, 0, 5, {kDrop, kEarlier, kEarlier, kFollow}},
    {"override", 50, 50, 8, {kAnyOrders, kGot, kNot, kVoid}},
    {"only-this", 10, 0, 5, {kFollow, kThis}},
    {"only-this", 35, 15, 6, {kAct | kFollow, kThis, kYou, kAnyOrders}},

    {"reader", 45, 40, 4, {kAi, kRead, kThis}},
    {"reader", 45, 40, 4, {kAi, kThis, kRead}},
    {"reader", 50, 45, 4, {kThis | kWhen, kRead, kAi}},
    {"reader", 45, 45, 5, {kWhen, kAi, kRead}},
    {"reader", 45, 45, 6, {kRead, kThis, kAi}},
    {"reader", 35, 35, 4, {kModel, kRead, kThis}},
    {"reader", 35, 35, 4, {kModel, kThis, kRead}},
    {"reader", 50, 45, 6, {kAnyModel, kYou, kRead, kThis}},
    // "Note to the AI", and not "Note: the AI ..."
    {"addresses-assistant", 45, 45, 4, {kNotice, kAi}, Pattern::Needs::kNoColon},
    {"addresses-assistant", 55, 55, 8, {kNotice, kAi, kAnyAct}, Pattern::Needs::kColonBehind},
    {"addresses-assistant", 30, 15, 4, {kNotice, kModel}, Pattern::Needs::kNoColon},
    // "A message from X to you, the model"
    {"addresses-assistant", 45, 45, 9, {kNotice, kTo, kYou, kAi}, Pattern::Needs::kNoColon},
    {"addresses-assistant", 40, 35, 5, {kAi, kMust, kAnyAct}},
    {"addresses-assistant", 30, 15, 5, {kModel, kMust, kAnyAct}},
    {"addresses-assistant", 45, 40, 2, {kAi, kYou, kMust}},
    {"addresses-assistant", 40, 25, 2, {kModel, kYou, kMust}},
    {"reader-orders", 15, 15, 8, {kAnyModel, kRead | kThis, kMust | kAnyAct}},
    {"reader-orders", 15, 15, 8, {kRead, kAi, kMust}},
    {"your-answer", 30, 0, 9, {kAnyAct, kYou, kReply}},
    {"your-answer", 20, 10, 5, {kYou, kReply, kMust | kNeed}},
    {"your-answer", 25, 0, 5, {kBefore, kYou, kReply}},
    {"your-orders", 20, 20, 2, {kYou, kAnyOrders}},
    {"new-orders", 25, 20, 4, {kYou, kLater | kEarlier | kNow, kTask}},

    // Of the class "exfiltrate" is only what orders its reader to send something to somebody else (kSink).
    {"exfiltrate", 50, 30, 8, {kSend, kSecret}, kSink},
    {"exfiltrate", 50, 15, 8, {kSend, kHaul}, kSink},
    {"exfiltrate", 50, 50, 10, {kHanded, kSecret | kHaul, kSend}, kSink},
    {"exfiltrate", 50, 0, 12, {kAct, kSecret | kHaul, kSend}, kSink},
    {"exfiltrate", 35, 10, 10, {kAct, kSecret, kTarget | kReply}, kSink},
    {"exfiltrate", 25, 0, 8, {kSend, kTarget}, kSink},
    {"sends-secret", 15, 15, 8, {kSend, kSecret}},
    {"sends-secret", 35, 0, 8, {kAct, kHaul, kSend}},

    {"conceal", 45, 40, 4, {kNot, kHide, kPerson}},
    {"conceal", 50, 45, 4, {kNot, kHide, kNot, kPerson}},
    {"conceal", 55, 0, 9, {kAnyAct, kNot, kHide, kPerson}},
    {"conceal", 55, 0, 9, {kAnyAct, kNot, kPerson, kHide}},
    {"conceal", 50, 45, 7, {kYou, kReply, kOmit}},
    {"conceal", 45, 35, 5, {kPerson, kNot, kHide, kAnyAct}},
    {"conceal", 50, 15, 6, {kNot, kHide, kReply}},
    {"conceal", 50, 20, 6, {kOmit, kYou, kReply}},
    {"conceal", 20, 10, 6, {kOmit, kReply}},
    {"conceal", 15, 10, 8, {kReply, kOmit}},
    {"conceal", 50, 0, 8, {kAct, kQuiet, kOmit}},
    {"conceal", 45, 0, 8, {kAct, kOmit, kReply | kPerson}},
    {"conceal", 50, 0, 6, {kAct, kQuiet, kNot, kHide}},
    {"conceal", 50, 0, 6, {kQuiet, kAct, kNot, kHide}},
    {"conceal", 45, 35, 4, {kNot, kPerson, kHide}},

    {"new-role", 55, 20, 5, {kPretend, kYou | kNot, kNot | kYou, kAnyOrders | kLimits}},
    {"new-role", 50, 15, 5, {kPretend, kNot, kAnyOrders | kLimits}},
    {"new-role", 40, 40, 3, {kNow, kYou, kModel | kLimits}},
    {"new-role", 35, 15, 6, {kPretend, kRights}},
    {"new-rights", 30, 30, 6, {kYou, kGot, kRights}},
    {"new-role", 25, 25, 6, {kYou, kPretend}},
    {"now-you", 20, 20, 2, {kYou, kNow, kAct}},
    {"no-limits", 15, 15, 4, {kNot, kLimits}},
    {"no-limits", 30, 25, 3, {kLimits, kAnyModel}},

    {"fake-approval", 25, 20, 4, {kPerson | kOffice, kApprove}},
    {"fake-approval", 20, 20, 3, {kYou, kApprove}},
    {"fake-approval", 20, 20, 3, {kApprove, kOffice}},
    {"unasked", 30, 30, 3, {kWithout, kGuarding | kAsk}},
    {"unasked", 30, 30, 3, {kNot, kAsk, kGuarding}},
    {"unasked", 30, 30, 4, {kGuarding, kNot, kNeed}},
    {"unasked", 30, 30, 5, {kNeed, kNot, kGuarding}},
    {"unasked", 30, 30, 5, {kNot, kNeed, kGuarding}},
    {"unguarded", 40, 10, 5, {kOff, kGuarding}},
    {"unguarded", 50, 15, 6, {kApprove, kSelf, kGuarding}},
    {"unguarded", 50, 15, 6, {kApprove, kGuarding, kSelf}},
    {"unguarded", 25, 0, 5, {kApprove, kGuarding}},
    {"unguarded", 20, 20, 4, {kGuarding, kOff}},
    {"approve-this", 15, 10, 3, {kApprove, kThis}},
    {"unguarded", 40, 0, 5, {kAct, kGuarding, kOff}},
    {"takes-rights", 40, 10, 5, {kAct, kSelf, kRights}},
    {"unguarded", 30, 10, 6, {kAct, kStore, kRights}},
    {"new-policy", 25, 25, 5, {kPolicy, kAi}},
    {"new-policy", 25, 25, 4, {kAi, kPolicy}},
    {"new-policy", 15, 15, 8, {kPolicy, kModel, kMust}},

    {"fake-turn", 50, 50, 9, {kPerson, kSays, kAnyAct}, kColon},
    {"turn-orders", 25, 0, 6, {kPerson, kAnyAct}, kColon},
    {"role-marker", 50, 20, 4, {kOffice, kYou, kMust}, kColon},
    {"persist", 35, 0, 12, {kAct | kRemember, kStore}},
    {"persist", 30, 10, 4, {kRemember, kThis, kAnyOrders | kPolicy}},
    {"your-answer", 25, 25, 4, {kLater, kReply, kMust}},
    {"persist", 50, 10, 5, {kAct | kRemember, kYou, kMemory}},
    {"persist", 30, 0, 5, {kRemember, kMemory}},
    {"later-sessions", 25, 15, 3, {kLater, kSession}},
    {"persist", 55, 0, 5, {kRemember, kLater, kSession}},

    {"demand", 25, 25, 6, {kYou, kNeed, kSend | kReveal, kHaul | kSecret}},
    {"purchase", 35, 0, 8, {kPay, kFunds}},
    {"swaps-account", 35, 20, 6, {kSwap, kLater | kEarlier, kFunds}},
    {"purchase", 50, 0, 6, {kAct | kApprove, kStored, kFunds}},
    {"purchase", 50, 0, 6, {kAct | kApprove, kFunds, kStored}},
    {"purchase", 50, 0, 14, {kPay, kFunds, kBefore, kReply}},
    {"first", 25, 0, 5, {kBefore, kReply}},
    {"first", 15, 10, 10, {kBefore, kYou, kTask, kMust | kFollow | kAct}},

    {"tool-call", 30, 0, 4, {kInvoke, kTool}},
    {"tool-call", 25, 10, 3, {kAct, kYou, kTool}},
    {"tool-call", 50, 0, 8, {kInvoke, kTool, kHaul | kSecret}},
    {"tool-call", 50, 0, 9, {kInvoke, kTool, kStore}},
    {"transform", 50, 0, 14, {kTransform, kFollow}},

    {"reveal-prompt", 50, 25, 6, {kReveal, kYou, kAnyOrders}},
    {"reveal-prompt", 50, 20, 8, {kReveal, kOrders, kGot}},
    {"reveal-prompt", 50, 20, 8, {kReveal, kGot, kOrders}},
    {"reveal-prompt", 45, 20, 5, {kReveal, kEarlier, kPrompt}},
    {"reveal-prompt", 25, 0, 6, {kReveal, kEarlier, kEarlier}},
    {"reveal-prompt", 25, 25, 4, {kYou, kGot, kBefore, kSession}},

    {"image", 50, 0, 30, {kReveal, kImage, kSwap, kSecret | kHaul}},
    {"image", 50, 0, 30, {kReveal, kImage, kSecret, kSwap}},
    {"image", 40, 0, 14, {kAct | kReveal, kImage, kReply | kHaul | kSecret}, kDestination},
    {"image", 30, 0, 6, {kYou, kReply, kImage}},

    {"orders", 10, 0, 5, {kAct, kTarget}},
    {"trigger", 20, 20, 5, {kWhen, kPerson, kAsk}},
};

}  // namespace

std::span<const Pattern> patterns() noexcept { return kPatterns; }

}  // namespace belljar::detect
