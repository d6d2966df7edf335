/* The rules of detect_skim.c, which has this file once for each width that a processor may have:
 * LANES is the target, LANE(x) the name of x in that width, and UP(x, n) the bits of x moved up by
 * n, with those that x_up brings from the windows before. What each rule is about stands at the
 * head of detect_skim.c. */

/* Of what was read, and of what is made of it. */
#define READ(x)                   \
    const detect_bits x = now->x; \
    detect_bits x##_up;           \
    LANE(later)(&x##_up, &x, &k->read.x)
#define KEEP(x)                             \
    detect_bits x##_up;                     \
    LANE(later)(&x##_up, &(x), &k->made.x); \
    k->made.x = (x)

/* A token behind what is no word, the dashes before a capital, "://". Leaves where a value may
 * begin, by what stands behind. */
LANES static inline void LANE(tokens)(struct skim *k, const struct detect_lanes *now,
                                      struct places *found)
{
    READ(word);
    READ(run);
    READ(begin);
    detect_bits run2 = run & UP(run, 1);
    KEEP(run2);
    detect_bits run4 = run2 & UP(run2, 2);
    KEEP(run4);
    detect_bits run8 = run4 & UP(run4, 4);
    KEEP(run8);
    detect_bits from_here = UP(run8, LAG - 7), one_of_these = UP(begin, LAG);
    found->begins = run8 & from_here & one_of_these & ~UP(word, LAG + 1);
    found->values = (from_here & UP(run8, LAG + 1 - SHORT_RUN)) | one_of_these;
}

LANES static inline void LANE(signs)(struct skim *k, const struct detect_lanes *now,
                                     struct places *found)
{
    const detect_bits none = now->run & ~now->word;
    detect_bits dots = none & now->digit, slash = none & now->upper,
                colon = now->between & now->digit, capital = now->upper & now->word;
    KEEP(dots);
    KEEP(slash);
    KEEP(colon);
    KEEP(capital);
    found->begins |= UP(dots, LAG) & UP(dots, LAG - 2) & UP(dots, LAG - 4) & UP(capital, LAG - 5);
    found->begins |= UP(colon, LAG) & UP(slash, LAG - 1) & UP(slash, LAG - 2);
}

/* Digits that none stand before. */
LANES static inline void LANE(numbers)(struct skim *k, const struct detect_lanes *now,
                                       struct places *found)
{
    READ(word);
    detect_bits digit = now->digit & word, upper = now->upper & word;
    KEEP(digit);
    KEEP(upper);
    detect_bits digit2 = digit & UP(digit, 1);
    KEEP(digit2);
    detect_bits digit4 = digit2 & UP(digit2, 2);
    KEEP(digit4);
    detect_bits country = upper & UP(upper, 1) & ~UP(word, 2);
    KEEP(country);
    detect_bits alone = ~UP(word, LAG + 1), first = UP(digit, LAG);
    detect_bits fours = UP(digit4, LAG - 8) & ~UP(digit, LAG - 4),
                many = UP(digit4, LAG - 7) & UP(digit4, LAG - 11);
    found->begins |= UP(digit4, LAG - 3) & (fours | many) & alone & k->cards;
    detect_bits next = UP(digit, LAG - 1) | ~UP(word, LAG - 1),
                behind = UP(country, LAG + 1) | (UP(country, LAG + 2) & alone);
    found->begins |= first & next & behind & k->ibans;
    found->begins |= first & (alone | UP(upper, LAG + 1)) & k->digits;
}

/* Where a value begins behind a sign behind a name: bits of a run added to the run leave it where
 * it ends. */
LANES static inline void LANE(values)(struct skim *k, const struct detect_lanes *now,
                                      struct places *found)
{
    const detect_bits between = now->between, names = now->word | (now->run & now->digit),
                      in = now->name & names, signs = between & (now->run | now->digit);
    detect_bits sum, value;
    LANE(add)(&value, &between, &signs, &k->carry[0]);
    LANE(add)(&sum, &names, &in, &k->carry[1]);
    const detect_bits behind = sum & ~names & between;
    LANE(add)(&sum, &between, &behind, &k->carry[2]);
    value &= sum & ~between;
    KEEP(value);
    found->values &= UP(value, LAG);
}

LANES static void LANE(skim)(struct skim *k)
{
    char rest[DETECT_LANES + DETECT_LANES_BEHIND];
    for (size_t at = k->from; at < k->to + LAG; at += DETECT_LANES) {
        struct detect_lanes now;
        struct places found;
        LANE(read)(k->filter, lanes_at(k, at, rest), &now);
        LANE(tokens)(k, &now, &found);
        LANE(signs)(k, &now, &found);
        LANE(numbers)(k, &now, &found);
        LANE(values)(k, &now, &found);
        k->read = now;
        detect_bits all = found.begins | found.values;
        if (LANE(any)(&all) && !tell_all(k, at, &found))
            return;
    }
}

#undef READ
#undef KEEP
#undef LANES
#undef LANE
#undef UP
