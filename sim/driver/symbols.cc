#include "sim/driver/symbols.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace gpuassay::sim {
namespace {

struct Tables {
  ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  std::size_t count = 0;
};

struct Search {
  std::uintptr_t inside = 0;
  Tables found;
};

// The dynamic section tells addresses; glibc has already relocated them, other loaders have not.
std::uintptr_t Relocated(std::uintptr_t base, std::uintptr_t address) {
  return address < base ? base + address : address;
}

Tables ReadDynamic(std::uintptr_t base, const ElfW(Dyn) * entry) {
  Tables tables;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const std::uintptr_t address = Relocated(base, entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) {
      tables.symbols = reinterpret_cast<ElfW(Sym)*>(address);
    } else if (entry->d_tag == DT_STRTAB) {
      tables.names = reinterpret_cast<const char*>(address);
    } else if (entry->d_tag == DT_HASH) {  // library.cmake asks the linker for it
      constexpr std::size_t kChains = 1;   // as many as symbols
      tables.count = reinterpret_cast<const ElfW(Word)*>(address)[kChains];
    }
  }
  return tables;
}

int Visit(dl_phdr_info* info, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const ElfW(Dyn)* dynamic = nullptr;
  bool contains = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const std::uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      contains = contains || search->inside - start < segment.p_memsz;
    } else if (segment.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(start);
    }
  }
  if (!contains) {
    return 0;
  }
  if (dynamic != nullptr) {
    search->found = ReadDynamic(info->dlpi_addr, dynamic);
  }
  return 1;  // no need to look further
}

}  // namespace

int HideSymbols(const void* inside, const std::function<bool(std::string_view)>& hide) {
  Search search{.inside = reinterpret_cast<std::uintptr_t>(inside), .found = {}};
  dl_iterate_phdr(Visit, &search);
  const Tables& tables = search.found;
  if (tables.symbols == nullptr || tables.names == nullptr || tables.count == 0) {
    return 0;
  }
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(tables.symbols) & ~(page - 1);
  const auto end = reinterpret_cast<std::uintptr_t>(tables.symbols + tables.count);
  void* pages = reinterpret_cast<void*>(first);
  if (mprotect(pages, end - first, PROT_READ | PROT_WRITE) != 0) {
    return 0;
  }
  int hidden = 0;
  for (std::size_t i = 0; i < tables.count; ++i) {
    ElfW(Sym)& symbol = tables.symbols[i];
    if (symbol.st_shndx != SHN_UNDEF && hide(tables.names + symbol.st_name)) {
      symbol.st_shndx = SHN_UNDEF;
      symbol.st_value = 0;
      ++hidden;
    }
  }
  mprotect(pages, end - first, PROT_READ);
  return hidden;
}

}  // namespace gpuassay::sim
