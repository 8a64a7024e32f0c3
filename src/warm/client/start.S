// The first instructions of the static `belljar`: a run that a spare serves never comes to libc (client.h). The stack is as the
// kernel left it: argc, argv, NULL, environment, NULL, ...; what libc expects of it and of the registers is as it was afterwards.
#if defined(__x86_64__)
  .text
  .globl belljar_start
  .hidden belljar_start
  .type belljar_start, @function
belljar_start:
  endbr64
  mov %rsp, %rbx
  mov %rdx, %r12
  xor %ebp, %ebp
  mov (%rsp), %edi
  lea 8(%rsp), %rsi
  lea 16(%rsp,%rdi,8), %rdx
  and $-16, %rsp
  call belljar_warm_first
  mov %r12, %rdx
  mov %rbx, %rsp
  jmp _start
  .size belljar_start, .-belljar_start
#elif defined(__aarch64__)
  .text
  .globl belljar_start
  .hidden belljar_start
  .type belljar_start, %function
belljar_start:
  bti c
  mov x19, x0
  mov x20, sp
  mov x29, #0
  mov x30, #0
  ldr w0, [sp]
  add x1, sp, #8
  add x2, x1, x0, lsl #3
  add x2, x2, #8
  bl belljar_warm_first
  mov sp, x20
  mov x0, x19
  mov x30, #0
  b _start
  .size belljar_start, .-belljar_start
#endif
  .section .note.GNU-stack, "", %progbits
