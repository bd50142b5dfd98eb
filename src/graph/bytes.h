/* Little-endian numbers at any alignment; callers have checked that the bytes are there. */
#ifndef NRG_GRAPH_BYTES_H
#define NRG_GRAPH_BYTES_H

#include <stdint.h>

static inline uint16_t nrg_le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t nrg_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t nrg_le64(const uint8_t *p)
{
    return (uint64_t)nrg_le32(p) | (uint64_t)nrg_le32(p + 4) << 32;
}

#endif
