/* The structs of which machines have written kymo-machine's tests/data/struct-layout.tsv. */
#include <stdint.h>

typedef enum IDEAS {
    ID_ONE = 0, ID_TWO, ID_THREE, ID_FOUR
} IDEAS;

typedef struct FORMATa {
    char      c1[5];
    uint32_t  i1;
    double    f1;
    uint32_t  i2;
    double    f2;
    uint64_t  l1;
    IDEAS     e1;
} FORMATa;

typedef struct FORMATb {
    char      c1[8];
    uint32_t  i1, i2;
    double    f1, f2;
    uint64_t  l1;
    IDEAS     e1;
} FORMATb;
