import { SHORTEST_PASSWORD } from '../settings.ts'

/**
 * Rejects passwords that an attacker would try first. NIST SP 800-63B requires a minimum length and a
 * blocklist, and advises against composition rules.
 *
 * Returns why a password is rejected, phrased as a predicate of its field, or undefined if it is acceptable.
 */
export const passwordFault = (password: string, username: string): string | undefined => {
  const text = password.normalize('NFKC').toLowerCase()
  if (text.length < SHORTEST_PASSWORD) return `must have at least ${SHORTEST_PASSWORD} characters`
  if (isDerived(text, username.toLowerCase()))
    return 'must not be your username, with or without digits and punctuation: choose one that cannot be guessed from it'
  if (isRepetition(text))
    return 'must not repeat the same characters: choose a longer phrase, such as four unrelated words'
  if (COMMON.has(text))
    return 'is one of the most common passwords: choose a longer phrase, such as four unrelated words'
  return undefined
}

/** `ada12345`, `Ada-ada!`: the username, once or repeated, with nothing but digits and punctuation added. */
const isDerived = (text: string, name: string): boolean =>
  text.includes(name) && !/[^\d\p{P}\p{S}\s]/u.test(text.replaceAll(name, ''))

/** `aaaaaaaa`, `12312312`, `adminadmin`: the same characters repeated at least once. */
const isRepetition = (text: string): boolean =>
  Array.from({ length: text.length >> 1 }, (_, n) => n + 1).some(
    (unit) => text.slice(unit) === text.slice(0, -unit),
  )

/** In lower case. Shorter passwords and repetitions are rejected anyway. */
const COMMON: ReadonlySet<string> = new Set(
  `
  password password0 password1 password2 password3 password4 password5 password6 password7 password8
  password9 password01 password10 password11 password12 password21 password99 password123 password1234
  password12345 password123456 password1! password! password!! password123! password@123 password@1
  password#1 password.1 password? password2020 password2021 password2022 password2023 password2024
  password2025 password2026 passwords mypassword mypassword1 mypass123 thepassword newpassword nopassword
  yourpassword passwort passwort1 passwort123 passwords1 p@ssword p@ssword1 p@ssword123 p@ssw0rd p@ssw0rd1
  p@ssw0rd12 p@ssw0rd123 p@ssw0rd! p@$$w0rd p@$$word pa$$word pa$$w0rd pa55word pa55w0rd passw0rd passw0rd1
  passw0rd123 passw0rd! passward passwor1 passwd123 pass1234 pass12345 pass123456 pass@123 pass@1234
  pass@word1 passpass1 drowssap 12345678 123456789 1234567890 12345678910 123456789a 123456789q 1234567891
  1234567899 12345678900 0123456789 01234567 012345678 87654321 987654321 9876543210 0987654321 098765432
  1234567a 12345678a 123456aa 123456ab 123456abc 123456qwerty a1234567 a12345678 a123456789 aa123456
  aa12345678 ab123456 abc12345 abc123456 abc1234567 abcd1234 abcd12345 abcd123456 abcde123 abcde12345
  abcdef12 abcdef123 abcdefg1 abcdefgh abcdefghi abcdefghij abcdefg123 abc123abc abc123def a1b2c3d4
  a1b2c3d4e5 1a2b3c4d 1a2b3c4d5e 1234abcd 12345abc 12345qwert 1234qwer 123qweasd 123qweasdzxc 123qwe123
  123qwe456 123abc123 1q2w3e4r 1q2w3e4r5t 1q2w3e4r5t6y 1qaz2wsx 1qaz2wsx3edc 1qazxsw2 1qaz@wsx 1qaz!qaz
  !qaz2wsx !qaz1qaz 1q2w3e4r! zaq12wsx zaq1xsw2 zaq!2wsx q1w2e3r4 q1w2e3r4t5 q1w2e3r4t5y6 qaz123456
  qazwsx123 qazwsxedc qazwsxedcrfv qazxswedc 0okm9ijn qwerty12 qwerty123 qwerty1234 qwerty12345
  qwerty123456 qwerty1! qwerty123! qwertyui qwertyuio qwertyuiop qwertyuiop123 qwertyu1 qwertzui qwertzuiop
  qwerasdf qwerasdfzxcv qwer1234 qwer12345 qwert123 qwert1234 qwert12345 qweasdzxc qweasd123 qweqweqwe1
  qwe12345 qwe123456 qwe123qwe qwaszx12 azertyui azertyuiop azerty123 asdfghjk asdfghjkl asdfghjkl1
  asdfgh123 asdf1234 asdf12345 asdfasdf1 asdfqwer asdqwe123 asd12345 asd123456 asd123asd zxcvbnm1
  zxcvbnm123 zxcvbnm, zxcvbnm,./ zxcv1234 zxcvasdf zxc12345 zxc123456 zxcvbnma lkjhgfdsa poiuytrewq
  mnbvcxz1 mnbvcxzlkj 11112222 11223344 1122334455 112233445566 11223344a 12121212a 123123123a 123321123
  123454321 1234554321 12344321 123455678 13579246 135792468 1357924680 135798642 147258369 147852369
  159357258 159753456 159753159 159951159 19216801 11111112 22223333 44445555 55556666 66667777 77778888
  88889999 99998888 963852741 741852963 789456123 789456123a 78945612 321654987 456789123 741258963
  852456789 951753852 31415926 314159265 3141592654 27182818 iloveyou iloveyou! iloveyou1 iloveyou2
  iloveyou3 iloveyou12 iloveyou123 iloveu12 iloveyou2! ilovegod ilovejesus ilovemom ilovemyself
  ilovemyfamily lovelove1 loveyou1 loveyou2 lovers123 lovely123 loveme12 loveme123 iloveyouso tequiero
  teamomucho welcome1 welcome2 welcome01 welcome12 welcome123 welcome1234 welcome12345 welcome1!
  welcome123! welcome@1 welcome@123 welcome2020 welcome2021 welcome2022 welcome2023 welcome2024 welcome2025
  welcome2026 welcomeback w3lcome1 bienvenue willkommen bienvenido letmein1 letmein! letmein12 letmein123
  letmein123! letmein2 letmeinnow letmeout openup123 opensesame opensesame1 open1234 access12 access123
  access14 access1234 changeme changeme1 changeme! changeme12 changeme123 changeme123! changeit123
  changethis temp1234 temp12345 temp123! temporary temporary1 default1 default123 secret12 secret123
  secret1234 topsecret mysecret mysecret1 supersecret verysecret s3cr3t123 admin123 admin1234 admin12345
  admin123456 admin123! admin@123 admin@1234 admin2020 admin2021 admin2022 admin2023 admin2024 admin2025
  admin2026 adminadmin1 administrator administrator1 administrador admin1admin adminpass adminpassword
  root1234 root12345 root123456 rootroot1 rootpass rootpassword toor1234 superuser superuser1 superadmin
  sysadmin1 sysadmin123 system123 system32 manager1 manager123 master12 master123 master1234 guest123
  guest1234 user1234 user12345 user123456 username username1 username123 userpass testuser testuser1
  testing1 testing12 testing123 testing1234 test1234 test12345 test123456 test123! test@123 test1test
  testpass testpass1 testpassword tester12 tester123 demo1234 demo12345 demopass example1 example123
  samples1 sample123 hello123 hello1234 hello12345 hellohello1 helloworld helloworld1 hello2you hellokitty
  hellokitty1 goodluck goodluck1 goodbye1 whatever whatever1 whatever2 whatever123 nothing1 nothing123
  anything1 something something1 noaccess idontknow iforgot1 iforgotit dontknow dontforget football
  football1 football12 football123 football2 footballer baseball baseball1 baseball12 baseball123
  basketball basketball1 basketball123 softball softball1 softball12 volleyball volleyball1 hockey12
  hockey123 soccer12 soccer123 superman superman1 superman12 superman123 batman12 batman123 spiderman
  spiderman1 spiderman2 spiderman123 starwars starwars1 starwars123 startrek startrek1 skywalker pokemon1
  pokemon12 pokemon123 minecraft minecraft1 minecraft123 fortnite1 fortnite123 blink182 metallica
  metallica1 slipknot slipknot1 slipknot666 linkinpark eminem123 nirvana1 greenday1 liverpool liverpool1
  liverpool123 chelsea1 chelsea123 arsenal1 arsenal12 arsenal123 manchester manutd123 barcelona barcelona1
  barcelona123 realmadrid realmadrid1 juventus juventus1 sunshine sunshine1 sunshine12 sunshine123
  sunshine2 sunshine! princess princess1 princess12 princess123 princess2 princesa princesa1 prinzessin
  butterfly butterfly1 butterfly123 sweetheart sweetheart1 beautiful beautiful1 babygirl babygirl1
  babygirl12 babygirl123 babyboy1 babyboo1 cutie123 angel123 angelina angelica angels123 alexander
  alexander1 alexandra alexandre charlie1 charlie12 charlie123 charlotte charlotte1 jennifer jennifer1
  jessica1 jessica123 michelle michelle1 michael1 michael12 michael123 jordan23 jordan123 jordan1234
  benjamin benjamin1 samantha samantha1 samantha123 stephanie stephanie1 elizabeth elizabeth1 christian
  christian1 christina christine christopher jonathan jonathan1 matthew1 matthew123 danielle danielle1
  daniel12 daniel123 anthony1 anthony123 andrew12 andrew123 ashley12 ashley123 amanda12 amanda123 brandon1
  brandon123 nicholas nicholas1 nicole12 nicole123 patrick1 victoria victoria1 veronica vanessa1 valentina
  valentine william1 william123 thomas12 thomas123 robert12 robert123 richard1 jasmine1 joseph12 joshua12
  joshua123 justin12 justin123 justinbieber isabella isabella1 gabriel1 gabriela gabrielle francesco
  francesca alejandro alejandra fernando fernanda sebastian sebastian1 santiago estrella mariposa chocolate
  chocolate1 chocolat cheese12 cheese123 cookie12 cookie123 cookies1 pepper12 pepper123 peanut12 peanut123
  pumpkin1 ginger12 strawberry strawberry1 blueberry banana12 banana123 orange12 orange123 purple12
  purple123 yellow12 monkey12 monkey123 monkey1234 dragon12 dragon123 dragon1234 dragonball dragonball1
  dragons1 shadow12 shadow123 shadow1234 tigger12 tigger123 tiger123 elephant elephant1 dolphin1 dolphins
  dolphins1 panther1 panthers phoenix1 falcons1 eagles12 cowboys1 steelers steelers1 yankees1 redskins
  raiders1 lakers24 packers1 mustang1 mustang123 corvette corvette1 ferrari1 porsche1 mercedes mercedes1
  computer computer1 computer12 computer123 internet internet1 internet123 microsoft microsoft1 windows1
  windows10 windows123 samsung1 samsung123 iphone12 google12 google123 facebook facebook1 facebook123
  youtube1 youtube123 twitter1 linkedin linkedin1 instagram snapchat1 whatsapp1 myspace1 myspace123
  adobe123 photoshop photoshop1 oracle123 postgres postgres1 postgres123 mysql123 database database1
  database123 server123 cisco123 ubuntu123 raspberry raspberrypi smartqueue smartqueue1 smartqueue!
  smartqueue123 freedom1 freedom123 america1 american1 canada123 england1 scotland australia newyork1
  california california1 florida1 december december1 november november1 october1 september september1
  february february1 january1 monday123 friday123 spring2024 spring2025 spring2026 summer12 summer123
  summer2020 summer2021 summer2022 summer2023 summer2024 summer2025 summer2026 summer01 summertime
  autumn2024 autumn2025 autumn2026 winter12 winter123 winter2020 winter2021 winter2022 winter2023
  winter2024 winter2025 winter2026 trustno1 trustno1! trustnoone nothanks iamgod123 killer12 killer123
  hunter12 hunter123 ranger12 gangster gangster1 warrior1 fuckyou1 fuckyou! fuckyou2 fuckyou12 fuckyou123
  fuckoff1 fuckme69 motherfucker asshole1 bullshit bullshit1 bitch123 superstar superstar1 rockstar
  rockstar1 rockstar123 rockandroll rock1234 lovelife godislove jesus123 jesuschrist jesusislord blessed1
  blessing faithful forever1 forever21 forever123 friends1 friendship familyguy family12 family123 lucky123
  lucky777 lollipop lollipop1 lol12345 marlboro marlboro1 midnight midnight1 moonlight moonlight1
  november11 patriots patriots1 pineapple playboy1 playstation remember remember1 savannah scooby12
  scorpion scorpion1 security security1 security123 septembre snowball snowman1 southside spongebob
  spongebob1 stargate tinkerbell tinkerbell1 trinity1 twilight twilight1 undertaker vacation virginia
  wallpaper westside wildcats wolverine wolfpack1 xbox3600 zeppelin zaqwsxcde zxasqw12 contraseña
  contrasena motdepasse doudou123 soleil123 bonjour1 bonjour123 hallo123 hallo1234 schalke04 dortmund
  senha123 senha1234 senha12345 brasil123 parola123 parola12 salasana haslo123 haslo1234 wachtwoord
  wachtwoord1 lozinka1 sifre123 sayang123 bismillah bismillah1 woaini1314 woaini520 5201314a 52013140
  asdf1234! abcd@123 abcd@1234 abc@1234 abc@12345 aa112233 aa123123 aa102030 aa1234567 aa123456789 aa@12345
  aa@123456 aa@1234567 aa@123456789 123456aa@ a123456a 12345678@ 12345678901 12345679 123456788 10203040
  22446688 12qwaszx 98765432 123654789 qwer4321 qwerty@123 demo@123 pass@12345 123admin heslo1234
  theworldinyourhand pakistan pakistan123 india@123 p@55w0rd lol123456 aaaa1111 aabb1122 garfield godzilla
  bigdaddy mountain brooklyn platinum nintendo cocacola lasvegas einstein spitfire cherokee infinity
  kawasaki bulldogs warcraft electric darkside darkness explorer paradise michigan carolina kimberly
  caroline champion svetlana courtney patricia anderson simpsons scarface semperfi marshall franklin
  vladimir brittany colorado motorola logitech predator mitchell cardinal williams airborne lifehack
  guinness maverick hardcore butthead shithead dickhead rush2112 4815162342 redwings lacrosse poohbear
  bollocks passport pearljam peekaboo creative wolfpack american vodafone loverboy
  `
    .trim()
    .split(/\s+/),
)
