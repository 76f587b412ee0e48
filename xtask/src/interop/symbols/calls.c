#include <stdio.h>
__attribute__((noinline)) static int leaf(int n) { return n * 3 + 1; }
__attribute__((noinline)) int branch(int n) { return leaf(n) + leaf(n + 1); }
int main(void) { int s = 0; for (int i = 0; i < 3; i++) s += branch(i); printf("%d\n", s); return 0; }
