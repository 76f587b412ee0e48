namespace shapes {
template <typename T> struct Box {
    T side;
    __attribute__((noinline)) T area(T times) const;
};
template <typename T> T Box<T>::area(T times) const {
    return side * times + 1;
}
}
static inline __attribute__((always_inline)) int twice(int n) {
    volatile int result = n;
    return result * 2;
}
extern "C" __attribute__((noinline)) int measure(int n) {
    shapes::Box<int> box{n};
    return twice(n) + box.area(n);
}
