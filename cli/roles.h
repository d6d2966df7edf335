/* The mains of the roles. Each is reached only when the parent (or `durward serve`) started the
 * binary as "durward: ROLE"; each begins with proc_enter and returns the exit status. */
#ifndef DURWARD_ROLES_H
#define DURWARD_ROLES_H

int parent_main(void);
int signer_main(void);
int vault_main(void);
int courier_main(void);
int dialer_main(void);
int gate_main(void);
int injector_main(void);
int logger_main(void);
int controller_main(void);
int builder_main(void);

#endif
